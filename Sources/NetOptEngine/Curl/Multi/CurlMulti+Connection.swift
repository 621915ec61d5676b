import CCurl
import NetOptCore

// Acts on whole connections: limits how much libcurl reads of an HTTP/2 connection, makes it send, shows the
// received bytes of new connections again, and ends connections that break the rules or fail.

extension CurlMulti {
  /// Lets libcurl read from a connection again, with the full budget of a new turn. Ends the connection
  /// instead if the server keeps sending data for no request.
  func beginTurn(of descriptor: Int32) {
    guard let connection = callbackState.live[descriptor], let reader = connection.reader else { return }
    reader.budget.beginTurn()
    // libcurl reads the end of the connection next. It then uses another connection to send those requests
    // again that may be sent again.
    if reader.budget.isFlooded { connection.end() }
  }

  /// Ends a connection whose session nghttp2 gave up. Each transfer on the connection then reads the end of
  /// the connection at once, and fails. Otherwise libcurl before 8.1.0 would report the failure to one
  /// transfer at once, and to the other transfers only when more data arrives.
  ///
  /// - Parameter session: the address of nghttp2's session. It is compared and not dereferenced.
  func endConnection(of session: UnsafeRawPointer) {
    guard let connection = LiveConnection.withSession(session),
      callbackState.live[connection.descriptor] === connection
    else { return }
    connection.end()
  }

  /// Schedules `settleNewConnections`, if there are new connections.
  func scheduleNewConnections() {
    guard let due = callbackState.newConnections.due else { return }
    let timer = newConnectionsTimer ?? MultiTimer(self) { $0.settleNewConnections() }
    newConnectionsTimer = timer
    loop.schedule(timer, at: due)
  }

  /// Makes the new connections whose time is over show their received bytes again (`NewConnections`).
  private func settleNewConnections() {
    callbackState.newConnections.settle(at: loop.now())
    scheduleNewConnections()
  }

  /// The time between two attempts to send the frames that nghttp2 keeps.
  private static var heldFramesInterval: Duration { .milliseconds(5) }

  /// Schedules `sendHeldFrames`.
  func scheduleHeldFrames() {
    guard !isShutDown else { return }
    let timer = heldFramesTimer ?? MultiTimer(self) { $0.sendHeldFrames() }
    heldFramesTimer = timer
    loop.schedule(timer, at: loop.now() + Self.heldFramesInterval)
  }

  /// Lets nghttp2 send the frames that it keeps while a socket has no room (SocketRoom.c). libcurl 7.88 does this
  /// only for a transfer with a body, and for others it does not even wait for room.
  private func sendHeldFrames() {
    guard !isShutDown else { return }
    for connection in callbackState.live.ready where connection.holdsFrames { sendHeldFrames(on: connection) }
    applyInterests()
    if callbackState.live.ready.contains(where: \.holdsFrames) { scheduleHeldFrames() }
    requestTurnEnd()
  }

  private func sendHeldFrames(on connection: LiveConnection) {
    // While a transfer is paused for receiving, a change of its pause does not let nghttp2 send. Without another
    // transfer, the frames wait until one of the connection is resumed or a new one sends.
    let transfers = underWay.lazy.flatMap(\.transfers).filter {
      $0.connection === connection && $0.verdict == .send && !$0.isReceivePaused
    }
    connection.holdsFrames = false
    for transfer in transfers {
      // At each change, libcurl lets nghttp2 send (`http2_data_pause` in lib/http2.c).
      let pause = transfer.isSendPaused ? CURLPAUSE_SEND : CURLPAUSE_CONT
      let code = curl_easy_pause(transfer.easy.raw, pause ^ CURLPAUSE_SEND)
      if code == CURLE_OK, curl_easy_pause(transfer.easy.raw, pause) == CURLE_OK { return }
      // libcurl has ended this transfer, and `settle` will too.
      connection.holdsFrames = true
    }
  }

  /// Ends a connection if TLS has failed on it, with the transfers whose responses have not arrived whole. libcurl
  /// may wait for such a connection without end, and occupy the loop meanwhile (`RecordReader.hasFailed`).
  func endIfFailed(_ connection: LiveConnection) {
    guard callbackState.live[connection.descriptor] === connection, connection.tlsReader?.hasFailed == true
    else {
      return
    }
    if !connection.isEnded { connection.end() }
    let transfers = underWay.flatMap {
      $0.transfers.filter { $0.connection === connection && !$0.hasStreamEnded }
    }
    // The end of one transfer may move or end others.
    for transfer in transfers where transfer.connection === connection {
      finished(transfer, CURLE_RECV_ERROR)
    }
  }
}
