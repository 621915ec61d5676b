import CCurl
import NetOptCore

// Limits how much libcurl reads of an HTTP/2 connection, and ends connections that break the rules.

extension CurlMulti {
  /// Lets libcurl read from a connection again, with the full budget of a new turn.
  func beginTurn(of descriptor: Int32) {
    guard let connection = callbackState.live[descriptor], let reader = connection.reader else { return }
    reader.budget.beginTurn()
    // libcurl then reads the end of the connection. On another connection it resends the requests that may be
    // sent again.
    if reader.budget.isFlooded { connection.end() }
  }

  /// Ends a connection that nghttp2 gave up. Each call on the connection then learns of the failure when it
  /// reads next, which is at once. libcurl before 8.1.0 tells one call, and the others only when data
  /// arrives.
  func endConnection(of session: UnsafeRawPointer) {
    guard let connection = LiveConnection.withSession(session),
      callbackState.live[connection.descriptor] === connection
    else { return }
    connection.end()
  }
}
