import CCurl
import NetOptCore

// How much libcurl reads of an HTTP/2 connection, and what it makes of its end: `RecordBudget`.

extension CurlMulti {
  /// Lets libcurl read of a connection once more, when it has looked after all of its streams.
  func beginTurn(of descriptor: Int32) {
    guard let reader = records.live[descriptor]?.reader else { return }
    lookAfterStreams()
    reader.hasFailed = false
    if !isBehind { reader.budget.beginTurn() }
    // libcurl reads the end of the connection then, and asks elsewhere again what may be asked again.
    if reader.budget.isFlooded { netopt_end(descriptor) }
  }

  /// Has libcurl go on with those streams that its timer is about.
  private func lookAfterStreams() {
    // Some rounds of that are the rule; see `settle`.
    for _ in 0..<4 where isBehind {
      records.timeout = nil
      act(CURL_SOCKET_TIMEOUT, 0)
      isBehind = records.timeout == 0
    }
  }

  /// Lets the streams of a connection read once more, when HTTP/2 may have given it up. If it did, they learn of it.
  func confirm(_ connection: LiveConnection) {
    guard !connection.isClosed, connection.reader?.mayBeGivenUp == true else { return }
    act(connection.descriptor, CURL_CSELECT_IN)
  }
}
