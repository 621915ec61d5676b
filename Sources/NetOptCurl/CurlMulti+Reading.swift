import CCurl
import NetOptCore

// How much libcurl reads of an HTTP/2 connection, and what it makes of its end: `RecordBudget`.

extension CurlMulti {
  /// Lets libcurl read of a connection once more, when it has looked after all of its streams.
  func beginTurn(of descriptor: Int32) {
    guard let connection = records.live[descriptor], let reader = connection.reader else { return }
    lookAfterStreams()
    if reader.wasAsked { connection.wasGivenUp = false }
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

  /// Finds out whether HTTP/2 gave a connection up: then libcurl reads no more of it, and its streams learn of that when they are to go on.
  func confirm(_ connection: LiveConnection) {
    guard let reader = connection.reader else { return }
    if connection.isClosed {
      connection.wasGivenUp = true
      return
    }
    reader.wasAsked = false
    act(connection.descriptor, CURL_CSELECT_IN)
    // Nobody was left to read when all streams have ended, but then libcurl closes what was given up. One that is paused does not read.
    connection.wasGivenUp = !reader.wasAsked && (connection.isClosed || reader.pausedStreams > 0)
  }
}
