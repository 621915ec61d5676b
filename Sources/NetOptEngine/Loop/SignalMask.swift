import Glibc

/// Blocks SIGPIPE on this thread, so that a write to a closed connection fails with an error and does not
/// kill the process. OpenSSL writes without MSG_NOSIGNAL, and a library must not change a signal's
/// disposition for the whole process.
func blockBrokenPipeSignal() {
  var signals = sigset_t()
  sigemptyset(&signals)
  sigaddset(&signals, SIGPIPE)
  pthread_sigmask(SIG_BLOCK, &signals, nil)
}
