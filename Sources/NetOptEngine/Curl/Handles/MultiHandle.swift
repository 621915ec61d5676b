import CCurl
import NetOptCore

/// Owns one libcurl multi handle (libcurl-multi(3)). libcurl's callbacks write to the `CallbackState`, so
/// this object keeps it alive.
final class MultiHandle {
  /// The `CURLM`. Invalid after `close`.
  let raw: UnsafeMutableRawPointer
  private let callbackState: CallbackState
  /// Whether `close` has not been called.
  private var isOpen = true

  /// - Throws: `libraryFailed` when libcurl gives no handle.
  init(_ configuration: CurlConfiguration, callbackState: CallbackState) throws(NetOptError) {
    guard CurlLibrary.isReady, let raw = curl_multi_init() else {
      throw NetOptError(.libraryFailed, phase: .send, "curl_multi_init returned no handle: out of memory")
    }
    self.raw = raw
    self.callbackState = callbackState
    let data = Unmanaged.passUnretained(callbackState).toOpaque()
    netopt_multi_setopt_socket(raw, socketChanged)
    netopt_multi_setopt_pointer(raw, CURLMOPT_SOCKETDATA, data)
    netopt_multi_setopt_timer(raw, timerChanged)
    netopt_multi_setopt_pointer(raw, CURLMOPT_TIMERDATA, data)
    netopt_multi_setopt_long(raw, CURLMOPT_PIPELINING, Int(CURLPIPE_MULTIPLEX))
    netopt_multi_setopt_long(raw, CURLMOPT_MAX_CONCURRENT_STREAMS, 1000)
    netopt_multi_setopt_long(raw, CURLMOPT_MAX_HOST_CONNECTIONS, configuration.connectionsPerEndpoint)
    netopt_multi_setopt_long(raw, CURLMOPT_MAX_TOTAL_CONNECTIONS, configuration.totalConnections)
    netopt_multi_setopt_long(raw, CURLMOPT_MAXCONNECTS, configuration.idleConnections)
    // libcurl 8.20.0 and later waits in curl_multi_cleanup for the threads that look up names of proxies,
    // unless this option is set. 21 is the number of CURLMOPT_QUICK_EXIT, which older headers lack. Older
    // releases refuse the option, and netopt ignores that.
    netopt_multi_setopt_long(raw, CURLMoption(rawValue: 21), 1)
  }

  deinit { close() }

  /// Closes all connections and frees the multi handle. All easy handles must have been removed from it
  /// before (curl_multi_cleanup(3)).
  func close() {
    if isOpen { curl_multi_cleanup(raw) }
    isOpen = false
  }
}

/// Records the readiness that libcurl wants to be told of on a socket (CURLMOPT_SOCKETFUNCTION(3)).
private func socketChanged(
  _ easy: UnsafeMutableRawPointer?, _ descriptor: curl_socket_t, _ what: Int32,
  _ data: UnsafeMutableRawPointer?,
  _ socketData: UnsafeMutableRawPointer?
) -> Int32 {
  // libcurl passes -1 for a connection without a socket, which the loop cannot watch.
  guard let data, descriptor >= 0 else { return 0 }
  var readiness: Readiness = []
  if what == CURL_POLL_IN || what == CURL_POLL_INOUT { readiness.insert(.read) }
  if what == CURL_POLL_OUT || what == CURL_POLL_INOUT { readiness.insert(.write) }
  CallbackState.withState(userData: data) { $0.setInterest(descriptor, readiness) }
  return 0
}

/// Records when libcurl wants to be called next (CURLMOPT_TIMERFUNCTION(3)).
private func timerChanged(
  _ multi: UnsafeMutableRawPointer?, _ milliseconds: Int, _ data: UnsafeMutableRawPointer?
) -> Int32 {
  guard let data else { return 0 }
  CallbackState.withState(userData: data) { $0.timeout = milliseconds }
  return 0
}
