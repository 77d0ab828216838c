package peers;

import io.aeron.security.CredentialsSupplier;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.HexFormat;
import javax.crypto.Mac;
import javax.crypto.SecretKeyFactory;
import javax.crypto.spec.PBEKeySpec;
import javax.crypto.spec.SecretKeySpec;

/** A user of our archive's credentials file as a stock client: connects with the name, answers the challenge of the file. */
public final class ScramCredentialsSupplier implements CredentialsSupplier
{
    private final String user;
    private final String password;

    ScramCredentialsSupplier(final String user, final String password)
    {
        this.user = user;
        this.password = password;
    }

    @Override
    public byte[] encodedCredentials()
    {
        return user.getBytes(StandardCharsets.US_ASCII);
    }

    @Override
    public byte[] onChallenge(final byte[] encodedChallenge)
    {
        final String[] words = new String(encodedChallenge, StandardCharsets.US_ASCII).split(" ");
        try
        {
            final PBEKeySpec spec = new PBEKeySpec(
                password.toCharArray(), HexFormat.of().parseHex(words[2]), Integer.parseInt(words[1]), 256);
            final byte[] salted = SecretKeyFactory.getInstance("PBKDF2WithHmacSHA256").generateSecret(spec).getEncoded();
            final byte[] key = hmac(salted, "Client Key".getBytes(StandardCharsets.US_ASCII));
            final byte[] signature = hmac(MessageDigest.getInstance("SHA-256").digest(key), encodedChallenge);
            for (int i = 0; i < key.length; i++)
            {
                key[i] ^= signature[i];
            }
            return HexFormat.of().formatHex(key).getBytes(StandardCharsets.US_ASCII);
        }
        catch (final GeneralSecurityException error)
        {
            throw new IllegalStateException(error);
        }
    }

    private static byte[] hmac(final byte[] key, final byte[] bytes) throws GeneralSecurityException
    {
        final Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(key, "HmacSHA256"));
        return mac.doFinal(bytes);
    }
}
