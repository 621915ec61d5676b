import NetOptCore

/// The cache of the resolver: the known addresses, the look-ups under way and their waiters.
///
/// A state machine without I/O: the caller reports requests for names and the outcomes of look-ups, and
/// carries out the actions that the cache returns. An answer is fresh for its time to live. For a day after
/// that it is stale: the cache still serves the answer, and a look-up refreshes it (RFC 8767). The cache
/// keeps failures for a short time (RFC 2308).
struct DNSCache {
  typealias Outcome = Result<ResolvedAddresses, NetOptError>
  /// Identifies a waiter: a number that the caller chooses and uses once.
  typealias Waiter = UInt64

  /// What the caller must do with a request for a name.
  enum Action {
    /// Return this outcome.
    case answer(Outcome)
    /// Return this stale answer, and start a look-up that renews it.
    case answerAndRefresh(ResolvedAddresses)
    /// Start a look-up. The waiter gets its answer when that look-up ends.
    case startLookUp
    /// Start nothing: a look-up is under way. The waiter gets its answer when that look-up ends.
    case wait
  }

  /// The shortest and the longest lifetime of an answer.
  static let lifetimes = Duration.seconds(1) ... .seconds(3600)
  /// How long after its time to live an answer is stale. The cache does not serve it after that.
  static let staleLifetime = Duration.seconds(86_400)
  /// How long the cache keeps the result that a name has no address.
  static let notFoundLifetime = Duration.seconds(30)
  /// How long the cache keeps the result that a look-up failed, for example because no server answered. The
  /// time is long enough for the requests of a burst to share one look-up, and short enough for the client to
  /// notice soon that the servers answer again.
  static let failureLifetime = Duration.seconds(1)

  private enum Entry {
    /// Addresses, and the network in which they were found. From `expires` on they are stale. A request for
    /// stale addresses starts a look-up only if it comes at `refresh` or later: `refresh` is `expires`, or
    /// the end of a short pause after a look-up that failed.
    case addresses([IPAddress], expires: MonotonicInstant, refresh: MonotonicInstant, Network)
    /// A failure, which the cache returns until `expires`, and the network in which it occurred.
    case failure(NetOptError, expires: MonotonicInstant, Network)
  }

  /// Identifies a network of this machine: the number of changes of the network since the cache was made.
  /// Name servers give answers that suit their network. So the cache serves an answer from an earlier network
  /// only when no name server of the present network answers.
  private typealias Network = Int

  private var entries: BoundedDictionary<String, Entry>
  /// The waiters of each look-up under way, by name. A look-up that refreshes a stale answer starts with no
  /// waiter.
  private var underWay: [String: [Waiter]] = [:]
  /// The present network.
  private var network: Network = 0

  /// - Parameter limit: the most names in the cache.
  init(limit: Int = 10_000) { entries = BoundedDictionary(limit: limit) }

  /// The number of names in the cache.
  var count: Int { entries.count }

  /// Limits the lifetime of an answer to `lifetimes`.
  static func bounded(_ answer: ResolvedAddresses) -> ResolvedAddresses {
    let lifetime = min(max(answer.timeToLive, lifetimes.lowerBound), lifetimes.upperBound)
    return ResolvedAddresses(answer.addresses, timeToLive: lifetime)
  }

  /// Decides what the caller must do with a request for a name.
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

  /// Stores the outcome of a look-up, and removes its waiters.
  ///
  /// - Returns: the waiters, and the outcome that they get. When the look-up failed and the cache has a stale
  ///   answer, they get the stale answer.
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
      // The name servers answered that the name has no address: an older answer is wrong.
      entries.store(.failure(error, expires: now + Self.notFoundLifetime, network), for: name)
    case .failure(let error):
      if case .addresses(let addresses, let expires, _, _) = entries.value(for: name),
        now < expires + Self.staleLifetime
      {
        // An answer from an earlier network is stale in this one, even when its time to live is not over.
        let refresh = now + Self.failureLifetime
        entries.store(
          .addresses(addresses, expires: min(expires, now), refresh: refresh, network), for: name)
        return (waiters, .success(Self.stale(addresses)))
      }
      entries.store(.failure(error, expires: now + Self.failureLifetime, network), for: name)
    }
    return (waiters, outcome)
  }

  /// Records that this machine has changed to another network.
  mutating func networkChanged() { network += 1 }

  /// Removes a waiter. Its look-up continues, for the other waiters and for the cache.
  mutating func abandon(_ name: String, by waiter: Waiter) {
    underWay[name]?.removeAll { $0 == waiter }
  }

  /// Makes a stale answer. It has the shortest lifetime, so that the caller asks again soon.
  private static func stale(_ addresses: [IPAddress]) -> ResolvedAddresses {
    ResolvedAddresses(addresses, timeToLive: lifetimes.lowerBound)
  }
}
