import NetOptCore

/// The probes that have TCP and are to begin TLS, one after the other.
///
/// A handshake is a millisecond of CPU on either side. Of eight that begin at once all end last, and the first request, which
/// goes out when the first of them is done, has waited for all eight. So they begin in the order in which TCP was connected,
/// that is the fastest first, and a little apart. The first one of many has a head start, for a request that may wait for it:
/// the others wait until it has ended. Confined to the loop.
struct Handshakes<Probe: AnyObject> {
  /// From one beginning to the next: 256 endpoints, the most that are probed at start, begin well within a second.
  static var apart: Duration { .milliseconds(2) }

  /// The most that the first one has to itself: more than a handshake with a server that is near takes.
  static var headStart: Duration { .milliseconds(10) }

  private var waiting: [Probe] = []
  private var nextBeginning = MonotonicInstant(nanoseconds: 0)
  /// When one came last for which a request may wait.
  private var lastKept: MonotonicInstant?
  /// Whether the next one is the first of those that come now.
  private var nextIsFirst = false
  /// The one that has a head start, as long as it has not ended.
  private var first: ObjectIdentifier?

  /// When the next one may begin; `nil` when none waits.
  var due: MonotonicInstant? { waiting.isEmpty ? nil : nextBeginning }

  func contains(_ probe: Probe) -> Bool { waiting.contains { $0 === probe } }

  /// A probe's TCP is connected.
  ///
  /// - Parameter isKept: whether its connection is kept, so that a request may wait for it.
  mutating func add(_ probe: Probe, at now: MonotonicInstant, isKept: Bool) {
    if isKept, waiting.isEmpty, lastKept.map({ now >= $0 + Self.headStart }) ?? true { nextIsFirst = true }
    if isKept { lastKept = now }
    waiting.append(probe)
  }

  /// Takes the one that begins now, and drops before it those that can begin no more.
  mutating func next(at now: MonotonicInstant, where mayBegin: (Probe) -> Bool) -> Probe? {
    guard now >= nextBeginning else { return nil }
    while !waiting.isEmpty {
      let probe = waiting.removeFirst()
      guard mayBegin(probe) else { continue }
      first = nextIsFirst ? ObjectIdentifier(probe) : nil
      nextBeginning = now + (nextIsFirst ? Self.headStart : Self.apart)
      nextIsFirst = false
      return probe
    }
    return nil
  }

  /// Somebody waits for one of these: it is the next one, and need not wait.
  ///
  /// - Returns: whether there is one.
  mutating func hurry(_ isWanted: (Probe) -> Bool) -> Bool {
    guard let index = waiting.firstIndex(where: isWanted) else { return false }
    waiting.insert(waiting.remove(at: index), at: 0)
    nextBeginning = MonotonicInstant(nanoseconds: 0)
    return true
  }

  /// A probe has ended. After the first one the next may begin, when the request that waited for it has had its turn.
  mutating func ended(_ probe: Probe, at now: MonotonicInstant) {
    remove { $0 === probe }
    guard first == ObjectIdentifier(probe) else { return }
    first = nil
    nextBeginning = min(nextBeginning, now + Self.apart)
  }

  /// Takes one out that has ended or begun.
  @discardableResult
  mutating func remove(_ isOver: (Probe) -> Bool) -> Probe? {
    guard let index = waiting.firstIndex(where: isOver) else { return nil }
    return waiting.remove(at: index)
  }
}
