"""TCP between hosts or containers: rank 0 in the middle, all others connected to it.

backend    the communicator                          wire       the layout of frames, drawn once
acceptor   rank 0's accepting thread                 join       a worker's connecting side
handshake  version, rank, size and proof of a token  tls        optional encryption
engine     native or Python collectives              star       collectives in Python
collect    rank 0's half of them                     stream     frames over a non-blocking socket
mac        session keys and tags                     sealed     frames with tags
sockets    options and deadlines of sockets          failure    kinds of failure and their sentences
drop_log   limited logging of dropped connections
"""
