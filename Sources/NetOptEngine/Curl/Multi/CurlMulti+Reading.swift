import CCurl
import NetOptCore

// How much libcurl reads of an HTTP/2 connection, and what becomes of one that breaks the rules.

extension CurlMulti {
  /// Lets libcurl read of a connection once more.
  func beginTurn(of descriptor: Int32) {
    guard let connection = records.live[descriptor], let reader = connection.reader else { return }
    reader.budget.beginTurn()
    // libcurl reads the end of the connection then, and asks elsewhere again what may be asked again.
    if reader.budget.isFlooded { connection.end() }
  }

  /// Ends a connection that HTTP/2 gave up, so that each call on it learns of it when it reads next, and that is at once. libcurl before
  /// 8.1.0 tells one of them, and the others when something comes.
  func endConnection(of session: UnsafeRawPointer) {
    guard let connection = LiveConnection.carrying(session),
      records.live[connection.descriptor] === connection
    else { return }
    connection.end()
  }
}
