"""What drivers and archives do now, from what they leave in shared memory and files: the servers do no work.

`snapshot` has what was read of all directories at one moment, `reader` reads it. `facts` compares two snapshots: streams with
rates and who holds back whom, recordings, servers, clients, errors, loss. Views draw facts and read nothing themselves.
"""
