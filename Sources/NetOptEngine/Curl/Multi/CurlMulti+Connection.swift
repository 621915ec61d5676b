import CCurl
import NetOptCore

// Acts on whole connections: limits how much libcurl reads of an HTTP/2 connection, makes it send, and ends
// connections that break the rules or fail.

extension CurlMulti {
  /// Lets libcurl read from a connection again, with the full budget of a new turn. Ends the connection
  /// instead if the server keeps sending data for no request.
  func beginTurn(of connection: LiveConnection) {
    guard let reader = connection.reader else { return }
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

  /// Sends the frames that nghttp2 kept while the socket had no room (SocketRoom.c). When there is room again,
  /// libcurl 7.88 lets nghttp2 send only if a transfer sends a body.
  func sendHeldFrames(on connection: LiveConnection) {
    let transfer = underWay.lazy.flatMap(\.transfers).first {
      $0.connection === connection && $0.verdict == .send && !$0.isReceivePaused
    }
    // Without such a transfer, the frames wait until a transfer of the connection is resumed.
    guard let transfer else { return }
    connection.holdsFrames = false
    // When a pause changes, libcurl lets nghttp2 send (`http2_data_pause` in lib/http2.c).
    let pause = transfer.isSendPaused ? CURLPAUSE_SEND : CURLPAUSE_CONT
    curl_easy_pause(transfer.easy.raw, pause ^ CURLPAUSE_SEND)
    curl_easy_pause(transfer.easy.raw, pause)
  }

  /// Ends a connection on which TLS has failed, with all its transfers. libcurl may wait for such a connection
  /// without end, and occupy the loop meanwhile (`RecordReader.hasFailed`).
  func endFailed(_ connection: LiveConnection) {
    connection.end()
    let transfers = underWay.flatMap { $0.transfers.filter { $0.connection === connection } }
    // The end of one transfer may move or end others.
    for transfer in transfers where transfer.connection === connection {
      finished(transfer, CURLE_RECV_ERROR)
    }
  }
}
