import CCurl
import NetOptCore

// How much libcurl reads of an HTTP/2 connection, and what becomes of one that breaks the rules.

extension CurlMulti {
  /// Lets libcurl read of a connection once more.
  func beginTurn(of descriptor: Int32) {
    guard let reader = records.live[descriptor]?.reader else { return }
    reader.budget.beginTurn()
    // libcurl reads the end of the connection then, and asks elsewhere again what may be asked again.
    if reader.budget.isFlooded { netopt_end(descriptor) }
  }

  /// Lets the calls on a connection learn that HTTP/2 gave it up. libcurl before 8.1.0 tells them when they read next, which is at
  /// their deadline when nothing more comes.
  func endCalls(of session: UnsafeRawPointer) {
    guard let connection = records.live[session: session] else { return }
    act(connection.descriptor, CURL_CSELECT_IN)
  }
}
