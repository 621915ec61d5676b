import NetOptCore

/// What is known of names and for how long, who waits for what, and which look-ups are to be made.
///
/// A state machine without I/O: whoever looks up names tells it who wants what and what came of it, and does what it
/// answers. Answers are kept for their time to live. After that they are still given while they are looked up anew,
/// and for a day when no server answers (RFC 8767). Failures are kept for a short while (RFC 2308).
struct DNSCache {
  typealias Outcome = Result<ResolvedAddresses, NetOptError>
  /// Who waits for a look-up: a number that the caller chooses and uses once.
  typealias Waiter = UInt64

  /// What is to be done for somebody who wants a name.
  enum Action {
    /// Answer this.
    case answer(Outcome)
    /// Answer this, and look the name up.
    case answerAndRefresh(ResolvedAddresses)
    /// Look the name up; the waiter is answered when that has ended.
    case startLookUp
    /// A look-up is under way; the waiter is answered when that has ended.
    case wait
  }

  /// The shortest and the longest time for which an answer is kept.
  static let lifetimes = Duration.seconds(1) ... .seconds(3600)
  /// How long an answer is still given after its time.
  static let staleLifetime = Duration.seconds(86_400)
  /// How long it is kept that a name has no address.
  static let notFoundLifetime = Duration.seconds(30)
  /// How long it is kept that no server answered: long enough that a burst of requests asks once, short enough that
  /// recovery is noticed.
  static let failureLifetime = Duration.seconds(1)

  private enum Entry {
    /// Addresses; once they have expired they are refreshed, but not before `refresh`.
    case addresses([IPAddress], expires: MonotonicInstant, refresh: MonotonicInstant, Network)
    case failure(NetOptError, expires: MonotonicInstant, Network)
  }

  /// Counts the networks that this machine has been in. Name servers answer as suits their network: what one of them said
  /// is given in another network only when nobody answers there.
  private typealias Network = Int

  private var entries: BoundedDictionary<String, Entry>
  /// The look-ups under way, and who waits for each. Nobody waits for a refresh.
  private var underWay: [String: [Waiter]] = [:]
  private var network: Network = 0

  /// - Parameter limit: the most names that are kept.
  init(limit: Int = 10_000) { entries = BoundedDictionary(limit: limit) }

  /// How many names are kept.
  var count: Int { entries.count }

  /// The answer with a lifetime that is in bounds.
  static func bounded(_ answer: ResolvedAddresses) -> ResolvedAddresses {
    let lifetime = min(max(answer.timeToLive, lifetimes.lowerBound), lifetimes.upperBound)
    return ResolvedAddresses(answer.addresses, timeToLive: lifetime)
  }

  /// Somebody wants a name.
  mutating func lookUp(_ name: String, for waiter: Waiter, at now: MonotonicInstant) -> Action {
    switch entries.value(for: name) {
    case .addresses(let addresses, let expires, _, network) where now < expires:
      return .answer(.success(ResolvedAddresses(addresses, timeToLive: expires - now)))
    case .addresses(let addresses, let expires, let refresh, network)
    where now < expires + Self.staleLifetime:
      if now < refresh || underWay[name] != nil { return .answer(.success(Self.stale(addresses))) }
      underWay[name] = []
      return .answerAndRefresh(Self.stale(addresses))
    case .failure(let error, let expires, network) where now < expires:
      return .answer(.failure(error))
    default:
      if underWay[name]?.append(waiter) != nil { return .wait }
      underWay[name] = [waiter]
      return .startLookUp
    }
  }

  /// A look-up has ended.
  ///
  /// - Returns: who waits for it, and what they are to be answered.
  mutating func ended(
    _ name: String, with outcome: Outcome, at now: MonotonicInstant
  ) -> (waiters: [Waiter], outcome: Outcome) {
    let waiters = underWay.removeValue(forKey: name) ?? []
    switch outcome {
    case .success(let answer):
      let answer = Self.bounded(answer)
      let expires = now + answer.timeToLive
      entries.store(.addresses(answer.addresses, expires: expires, refresh: expires, network), for: name)
      return (waiters, .success(answer))
    case .failure(let error) where error.code == .nameNotFound:
      // The servers have spoken: what was known before is wrong.
      entries.store(.failure(error, expires: now + Self.notFoundLifetime, network), for: name)
    case .failure(let error):
      if case .addresses(let addresses, let expires, _, _) = entries.value(for: name),
        now < expires + Self.staleLifetime
      {
        // Its time is over, whatever it said in the network that it comes from.
        let refresh = now + Self.failureLifetime
        entries.store(
          .addresses(addresses, expires: min(expires, now), refresh: refresh, network), for: name)
        return (waiters, .success(Self.stale(addresses)))
      }
      entries.store(.failure(error, expires: now + Self.failureLifetime, network), for: name)
    }
    return (waiters, outcome)
  }

  /// This machine is in another network.
  mutating func networkChanged() { network += 1 }

  /// A waiter does not want its answer any more. The look-up goes on, for the others and for the cache.
  mutating func abandon(_ name: String, by waiter: Waiter) {
    underWay[name]?.removeAll { $0 == waiter }
  }

  /// An answer that is past its time: to be asked for again soon.
  private static func stale(_ addresses: [IPAddress]) -> ResolvedAddresses {
    ResolvedAddresses(addresses, timeToLive: lifetimes.lowerBound)
  }
}
