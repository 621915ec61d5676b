import NetOptCore

/// The probes and warm-ups that have a TCP connection and wait to begin TLS, one after another. The comments
/// below call both of them probes.
///
/// A handshake takes a millisecond of CPU on either side. Eight handshakes that begin at once all end as late
/// as the last one. The first request goes out when the first handshake is done, so it would wait for all
/// eight. Therefore probes begin TLS in the order in which TCP connected, the fastest first, and a little
/// apart. The first of many probes has a head start, because a request may wait for it: the other probes wait
/// until the first one has ended, `headStart` at most. Confined to the loop.
struct Handshakes<Probe: AnyObject> {
  /// The pause between the beginnings of two handshakes. 256 endpoints, the most that are probed at start,
  /// begin well within a second.
  static var apart: Duration { .milliseconds(2) }

  /// The longest head start of the first probe: more than a handshake with a nearby server takes.
  static var headStart: Duration { .milliseconds(10) }

  /// The waiting probes, in the order in which they begin.
  private var waiting: [Probe] = []
  /// The earliest moment at which the next probe may begin.
  private var nextBeginning = MonotonicInstant(nanoseconds: 0)
  /// When a probe whose connection is kept (`add`) was last added; `nil` before the first such probe.
  private var lastKept: MonotonicInstant?
  /// Whether the next probe gets a head start.
  private var nextIsFirst = false
  /// The probe that has the head start; `nil` if there is none, because that probe has ended or the next
  /// probe has begun.
  private var first: ObjectIdentifier?

  /// When the next probe may begin; `nil` when no probe waits.
  var due: MonotonicInstant? { waiting.isEmpty ? nil : nextBeginning }

  func contains(_ probe: Probe) -> Bool { waiting.contains { $0 === probe } }

  /// Adds a probe whose TCP is connected. The probe gets a head start if its connection is kept, no other
  /// probe waits, and no probe whose connection is kept was added within the last `headStart`.
  ///
  /// - Parameter keepsConnection: whether the probe's connection is kept, so that a request may wait for it.
  mutating func add(_ probe: Probe, at now: MonotonicInstant, keepsConnection: Bool) {
    if keepsConnection, waiting.isEmpty, lastKept.map({ now >= $0 + Self.headStart }) ?? true {
      nextIsFirst = true
    }
    if keepsConnection { lastKept = now }
    waiting.append(probe)
  }

  /// Removes and returns the next probe if it may begin TLS now; `nil` if none may. Drops the probes that can
  /// no longer begin.
  ///
  /// - Parameter mayBegin: whether a probe can still begin TLS.
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

  /// Moves a probe that a request waits for to the front, so that `next` returns this probe without a pause.
  ///
  /// - Parameter isWanted: whether a request waits for a probe.
  /// - Returns: whether there is such a probe.
  mutating func prioritize(_ isWanted: (Probe) -> Bool) -> Bool {
    guard let index = waiting.firstIndex(where: isWanted) else { return false }
    waiting.insert(waiting.remove(at: index), at: 0)
    nextBeginning = MonotonicInstant(nanoseconds: 0)
    return true
  }

  /// Records that a probe has ended. If the probe had the head start, the next probe may begin after the
  /// pause `apart`. In this pause, the request that waited for the ended probe's connection goes out.
  mutating func ended(_ probe: Probe, at now: MonotonicInstant) {
    remove { $0 === probe }
    guard first == ObjectIdentifier(probe) else { return }
    first = nil
    nextBeginning = min(nextBeginning, now + Self.apart)
  }

  /// Removes and returns a waiting probe that need not wait any more: the probe has ended, or has begun TLS
  /// although `next` has not returned it.
  ///
  /// - Parameter isOver: whether a probe is the one to remove.
  @discardableResult
  mutating func remove(_ isOver: (Probe) -> Bool) -> Probe? {
    guard let index = waiting.firstIndex(where: isOver) else { return nil }
    return waiting.remove(at: index)
  }
}
