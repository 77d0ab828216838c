package peers;

import io.aeron.security.Authenticator;
import io.aeron.security.AuthenticatorSupplier;
import io.aeron.security.SessionProxy;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

/** Two users for the scenarios of sessions: by name and password, or by name alone and the password as answer to a challenge. */
public final class UsersAuthenticatorSupplier implements AuthenticatorSupplier
{
    private static final Map<String, String> PASSWORDS = Map.of("alice", "open sesame", "bob", "b:ob");

    @Override
    public Authenticator get()
    {
        return new Users();
    }

    private static final class Users implements Authenticator
    {
        private final Map<Long, String> credentials = new HashMap<>();
        private final Map<Long, String> answers = new HashMap<>();

        @Override
        public void onConnectRequest(final long sessionId, final byte[] encodedCredentials, final long nowMs)
        {
            credentials.put(sessionId, new String(encodedCredentials, StandardCharsets.ISO_8859_1));
        }

        @Override
        public void onChallengeResponse(final long sessionId, final byte[] encodedCredentials, final long nowMs)
        {
            answers.put(sessionId, new String(encodedCredentials, StandardCharsets.ISO_8859_1));
        }

        @Override
        public void onConnectedSession(final SessionProxy session, final long nowMs)
        {
            final String given = credentials.get(session.sessionId());
            final int colon = given.indexOf(':');
            if (colon < 0 && PASSWORDS.containsKey(given))
            {
                session.challenge("password?".getBytes(StandardCharsets.US_ASCII));
            }
            else if (colon > 0 && given.substring(colon + 1).equals(PASSWORDS.get(given.substring(0, colon))))
            {
                session.authenticate(given.substring(0, colon).getBytes(StandardCharsets.US_ASCII));
            }
            else
            {
                session.reject();
            }
        }

        @Override
        public void onChallengedSession(final SessionProxy session, final long nowMs)
        {
            final String answer = answers.get(session.sessionId());
            final String user = credentials.get(session.sessionId());
            if (answer != null && answer.equals(PASSWORDS.get(user)))
            {
                session.authenticate(user.getBytes(StandardCharsets.US_ASCII));
            }
            else if (answer != null)
            {
                session.reject();
            }
        }
    }
}
