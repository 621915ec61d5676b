import NetOptCore
import Synchronization

/// Counts what a transport does (`TransportCounts`). Any thread may read the counts. Only the loop's thread
/// changes them, so a change needs no atomic addition: it is a load and a store.
final class TransportCounter: Sendable {
  private let openConnections = Atomic(0)
  private let connections = Atomic(0)
  private let fullHandshakes = Atomic(0)
  private let resumedHandshakes = Atomic(0)
  private let receivedBytes = Atomic(0)
  private let sentBytes = Atomic(0)

  /// The counts until now.
  var counts: TransportCounts {
    var counts = TransportCounts()
    counts.openConnections = openConnections.load(ordering: .relaxed)
    counts.connections = connections.load(ordering: .relaxed)
    counts.fullHandshakes = fullHandshakes.load(ordering: .relaxed)
    counts.resumedHandshakes = resumedHandshakes.load(ordering: .relaxed)
    counts.receivedBytes = receivedBytes.load(ordering: .relaxed)
    counts.sentBytes = sentBytes.load(ordering: .relaxed)
    return counts
  }

  /// Counts a socket that libcurl opened.
  func opened() {
    Self.add(1, to: connections)
    Self.add(1, to: openConnections)
  }

  /// Counts the closing of a socket. `opened` has counted its opening.
  func closed() { Self.add(-1, to: openConnections) }

  /// Counts a TLS handshake with a server.
  func completedHandshake(isResumed: Bool) {
    if isResumed { Self.add(1, to: resumedHandshakes) } else { Self.add(1, to: fullHandshakes) }
  }

  /// Counts bytes of a response's body.
  func received(_ bytes: Int) { Self.add(bytes, to: receivedBytes) }

  /// Counts bytes of a request's body.
  func sent(_ bytes: Int) { Self.add(bytes, to: sentBytes) }

  private static func add(_ number: Int, to count: borrowing Atomic<Int>) {
    count.store(count.load(ordering: .relaxed) &+ number, ordering: .relaxed)
  }
}
