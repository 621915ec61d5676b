import CCurl
import Glibc
import NetOptCore

// libcurl calls these functions on the loop's thread, from within `curl_multi_socket_action`,
// `curl_easy_pause`, `curl_multi_remove_handle` and `curl_multi_cleanup`. The last two may close connections,
// so they call `closeSocket`. The functions record events, on the transfer and in the `CallbackState`. netopt
// acts on these events after libcurl's function has returned. The return value of a callback is an answer
// that libcurl obeys at once. For example, the gate decides whether libcurl sends the request.

extension EasyHandle {
  /// Sets the handle's callbacks and their user data.
  ///
  /// - Parameters:
  ///   - this: this `EasyHandle`, unretained.
  ///   - callbackState: the `CallbackState`, unretained. It gets the reports of closed sockets.
  func setCallbacks(this: UnsafeMutableRawPointer, callbackState: UnsafeMutableRawPointer) {
    netopt_setopt_data(raw, CURLOPT_HEADERFUNCTION, receiveHeader)
    netopt_setopt_pointer(raw, CURLOPT_PRIVATE, this)
    netopt_setopt_pointer(raw, CURLOPT_HEADERDATA, this)
    netopt_setopt_data(raw, CURLOPT_WRITEFUNCTION, receiveBody)
    netopt_setopt_pointer(raw, CURLOPT_WRITEDATA, this)
    netopt_setopt_data(raw, CURLOPT_READFUNCTION, sendBody)
    netopt_setopt_pointer(raw, CURLOPT_READDATA, this)
    netopt_setopt_seek(raw, rewindBody)
    netopt_setopt_pointer(raw, CURLOPT_SEEKDATA, this)
    netopt_setopt_prereq(raw, checkPrerequest)
    netopt_setopt_pointer(raw, CURLOPT_PREREQDATA, this)
    netopt_setopt_progress(raw, reportProgress)
    netopt_setopt_pointer(raw, CURLOPT_XFERINFODATA, this)
    netopt_setopt_opensocket(raw, openSocket)
    netopt_setopt_pointer(raw, CURLOPT_OPENSOCKETDATA, this)
    netopt_setopt_debug(raw, reportDebug)
    netopt_setopt_pointer(raw, CURLOPT_DEBUGDATA, this)
    // A connection may outlive the handle that opened it. So libcurl reports the closing of its socket to the
    // `CallbackState`, which lives as long as the connections.
    netopt_setopt_closesocket(raw, closeSocket)
    if OpenSSL.loaded != nil { netopt_setopt_ssl_context(raw, configureContext) }
    netopt_setopt_pointer(raw, CURLOPT_CLOSESOCKETDATA, callbackState)
  }
}

extension EasyHandle {
  /// Returns the transfer that an easy handle performs; `nil` if it performs none.
  ///
  /// - Parameter pointer: libcurl's pointer to the handle. An `EasyHandle` must own the handle.
  static func transfer(of pointer: UnsafeMutableRawPointer) -> Transfer? {
    var data: UnsafeMutableRawPointer?
    netopt_getinfo_pointer(pointer, CURLINFO_PRIVATE, &data)
    return NetOptEngine.transfer(data)
  }
}

/// Returns the transfer that the `EasyHandle` in a callback's user data performs.
///
/// Unsafe: the `EasyHandle` is not retained here. It is alive, because libcurl is working on its handle.
private func transfer(_ data: UnsafeMutableRawPointer?) -> Transfer? {
  guard let data else { return nil }
  return Unmanaged<EasyHandle>.fromOpaque(data)._withUnsafeGuaranteedRef { $0.transfer }
}

/// Takes a line of a head or of trailers (CURLOPT_HEADERFUNCTION(3)).
private func receiveHeader(
  _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ data: UnsafeMutableRawPointer?
) -> Int {
  guard let transfer = transfer(data), let bytes else { return 0 }
  return transfer.receive(header: UnsafeRawBufferPointer(start: bytes, count: count)) ? count : 0
}

/// Takes a piece of a response's body (CURLOPT_WRITEFUNCTION(3)).
private func receiveBody(
  _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ data: UnsafeMutableRawPointer?
) -> Int {
  guard let transfer = transfer(data), let bytes else { return 0 }
  switch transfer.receive(body: UnsafeRawBufferPointer(start: bytes, count: count)) {
  case .taken: return count
  case .paused: return Int(CURL_WRITEFUNC_PAUSE)
  // A smaller count than libcurl passed ends the transfer.
  case .refused: return 0
  }
}

/// Gives libcurl more of a request's body (CURLOPT_READFUNCTION(3)).
private func sendBody(
  _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ data: UnsafeMutableRawPointer?
) -> Int {
  guard let transfer = transfer(data), let bytes else { return Int(CURL_READFUNC_ABORT) }
  switch transfer.fill(UnsafeMutableRawBufferPointer(start: bytes, count: size * count)) {
  case .bytes(let count):
    transfer.callbackState.counter.sent(count)
    return count
  case .notYet: return Int(CURL_READFUNC_PAUSE)
  case .failed: return Int(CURL_READFUNC_ABORT)
  }
}

/// Makes `sendBody` begin at the first byte of the body again, because libcurl sends the request again
/// (CURLOPT_SEEKFUNCTION(3)).
private func rewindBody(_ data: UnsafeMutableRawPointer?, _ offset: curl_off_t, _ origin: Int32) -> Int32 {
  guard let transfer = transfer(data), origin == SEEK_SET, transfer.rewind(to: Int64(offset)) else {
    return CURL_SEEKFUNC_FAIL
  }
  return CURL_SEEKFUNC_OK
}

/// The gate: decides whether libcurl sends the request on the connection that is ready
/// (CURLOPT_PREREQFUNCTION(3)).
private func checkPrerequest(
  _ data: UnsafeMutableRawPointer?, _ remote: UnsafeMutablePointer<CChar>?,
  _ local: UnsafeMutablePointer<CChar>?, _ remotePort: Int32, _ localPort: Int32
) -> Int32 {
  let ends = ConnectionEnds(remote: remote, remotePort: remotePort, local: local, localPort: localPort)
  guard let transfer = transfer(data), transfer.passGate(between: ends) else { return CURL_PREREQFUNC_ABORT }
  return CURL_PREREQFUNC_OK
}

/// Ends a transfer whose proxy sends an endless response to CONNECT (CURLOPT_XFERINFOFUNCTION(3)). libcurl
/// calls this only for transfers through a proxy.
private func reportProgress(
  _ data: UnsafeMutableRawPointer?, _ downTotal: curl_off_t, _ down: curl_off_t, _ upTotal: curl_off_t,
  _ up: curl_off_t
) -> Int32 {
  transfer(data)?.mayContinueTunnel() == false ? 1 : 0
}

/// Passes on what libcurl reads and writes, before libcurl interprets it (CURLOPT_DEBUGFUNCTION(3)). libcurl
/// calls this only while `EasyHandle.isVerbose` is set.
private func reportDebug(
  _ easy: UnsafeMutableRawPointer?, _ kind: curl_infotype, _ text: UnsafeMutablePointer<CChar>?, _ size: Int,
  _ data: UnsafeMutableRawPointer?
) -> Int32 {
  guard let transfer = transfer(data), let text else { return 0 }
  let bytes = UnsafeRawBufferPointer(start: text, count: size)
  switch kind {
  case CURLINFO_TEXT: transfer.noteDebugText(bytes)
  // CURLINFO_REQUEST_SIZE(3) does not show whether bytes were written: it counts only the first write, for
  // which the socket may have no room.
  case CURLINFO_HEADER_OUT, CURLINFO_DATA_OUT: if size > 0 { transfer.sent.wasWritten() }
  case CURLINFO_DATA_IN: transfer.follow(body: bytes)
  // libcurl parses the line in this buffer next. With "x" as its first byte, the line is no fold, so libcurl
  // does not append it to another field. The transfer then refuses the line.
  case CURLINFO_HEADER_IN: if transfer.mustHide(bytes) { text.pointee = 0x78 }
  default: break
  }
  return 0
}

/// Opens a socket for a connection (CURLOPT_OPENSOCKETFUNCTION(3)).
private func openSocket(
  _ data: UnsafeMutableRawPointer?, _ purpose: curlsocktype, _ address: UnsafeMutablePointer<curl_sockaddr>?
) -> curl_socket_t {
  guard let transfer = transfer(data), let address = address?.pointee else { return CURL_SOCKET_BAD }
  let type = address.socktype | netopt_close_on_exec
  let descriptor = socket(address.family, type, address.protocol)
  guard descriptor >= 0 else {
    transfer.couldNotOpen(errno)
    return CURL_SOCKET_BAD
  }
  guard netopt_inline_urgent_data(descriptor) == 0 else {
    transfer.couldNotOpen(errno)
    close(descriptor)
    return CURL_SOCKET_BAD
  }
  transfer.opened(descriptor)
  return descriptor
}

/// Configures OpenSSL for a new TLS connection (CURLOPT_SSL_CTX_FUNCTION(3)).
private func configureContext(
  _ easy: UnsafeMutableRawPointer?, _ context: UnsafeMutableRawPointer?, _ data: UnsafeMutableRawPointer?
) -> CURLcode {
  if let context = context.map({ OpaquePointer($0) }), let openSSL = OpenSSL.loaded {
    openSSL.keepSessions(of: context)
    openSSL.keepBuffers(of: context)
    if CurlLibrary.gathersFrames { openSSL.acceptMovedWrites(in: context) }
    openSSL.readRecordByRecord(in: context)
    openSSL.limitGroups(of: context)
    openSSL.limitCertificates(of: context)
    openSSL.followHandshakes(of: context)
    openSSL.watchRecords(of: context)
    guard let transfer = easy.flatMap({ EasyHandle.transfer(of: $0) }) else {
      return CURLE_ABORTED_BY_CALLBACK
    }
    guard transfer.configureTLS(of: context) else { return CURLE_SSL_CERTPROBLEM }
    if !transfer.exchange.plan.isSecure { transfer.proxyTLS = ProxyTLS.attach(to: context) }
  }
  return CURLE_OK
}

/// Closes the socket of a connection (CURLOPT_CLOSESOCKETFUNCTION(3)).
private func closeSocket(_ data: UnsafeMutableRawPointer?, _ descriptor: curl_socket_t) -> Int32 {
  if let data, descriptor >= 0 {
    CallbackState.withState(userData: data) { $0.closed(descriptor) }
  }
  return close(descriptor)
}
