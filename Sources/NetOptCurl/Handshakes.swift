import NetOptCore

/// The probes that have TCP and are to begin TLS, one after the other.
///
/// A handshake is a millisecond of CPU on either side. Of eight that begin at once all end last, and the first request, which
/// goes out when the first of them is done, has waited for all eight. So they begin in the order in which TCP was connected,
/// that is the fastest first, and a little apart. Confined to the loop.
struct Handshakes<Probe: AnyObject> {
  /// From one beginning to the next: 256 endpoints, the most that are probed at start, have begun within half a second.
  static var apart: Duration { .milliseconds(2) }

  private var waiting: [Probe] = []
  private var nextBeginning = MonotonicInstant(nanoseconds: 0)

  /// When the next one may begin; `nil` when none waits.
  var due: MonotonicInstant? { waiting.isEmpty ? nil : nextBeginning }

  /// A probe's TCP is connected.
  mutating func add(_ probe: Probe) { waiting.append(probe) }

  /// Takes the one that begins now.
  mutating func next(at now: MonotonicInstant) -> Probe? {
    guard !waiting.isEmpty, now >= nextBeginning else { return nil }
    nextBeginning = now + Self.apart
    return waiting.removeFirst()
  }

  /// A probe has ended.
  mutating func remove(_ probe: Probe) {
    if !waiting.isEmpty { waiting.removeAll { $0 === probe } }
  }
}
