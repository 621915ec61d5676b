import CCurl
import NetOptCore

// Limits how much libcurl reads of an HTTP/2 connection, and ends connections that break the rules.

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
}
