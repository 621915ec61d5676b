public import NetOptCore

/// A resolver that answers from a table.
public final class StubResolver: Resolver {
  /// The outcome of a look-up.
  public enum Outcome: Sendable {
    /// The look-up returns these addresses.
    case addresses([IPAddress])
    /// The name does not exist.
    case notFound
    /// No name server responds. The look-up fails at once.
    case failure
    /// The look-up waits until it is cancelled or the resolver is shut down.
    case silence
  }

  /// A look-up that the resolver received.
  public struct Lookup: Sendable, Hashable {
    /// The host name to resolve.
    public let name: String
    /// Whether the caller asked the resolver to ignore cached addresses.
    public let fresh: Bool

    /// Creates a look-up.
    public init(_ name: String, fresh: Bool = false) {
      self.name = name
      self.fresh = fresh
    }
  }

  private struct State {
    /// The outcome for each name.
    var outcomes: [String: Outcome]
    /// The outcome for other names.
    let others: Outcome
    /// The look-ups that began, in order.
    var lookups: [Lookup] = []
    /// The number of look-ups with the outcome `silence` that have not ended.
    var underWay = 0
    var isShutDown = false
  }

  private let state: AsyncCondition<State>
  /// How long callers may keep the addresses of a look-up.
  private let timeToLive: Duration

  /// Creates a resolver.
  ///
  /// - Parameters:
  ///   - outcomes: the outcome for each name.
  ///   - others: the outcome for other names. Default: the name does not exist.
  ///   - timeToLive: how long callers may keep the addresses. Default: 60 s.
  public init(
    _ outcomes: [String: Outcome] = [:], others: Outcome = .notFound, timeToLive: Duration = .seconds(60)
  ) {
    state = AsyncCondition(State(outcomes: outcomes, others: others))
    self.timeToLive = timeToLive
  }

  /// Creates a resolver that finds one name.
  public convenience init(_ name: String, _ addresses: [IPAddress]) {
    self.init([name: .addresses(addresses)])
  }

  /// Changes the outcome for a name, for look-ups that begin from now on.
  public func set(_ outcome: Outcome, for name: String) { state.update { $0.outcomes[name] = outcome } }

  /// The look-ups that began, in order.
  public var lookups: [Lookup] { state.state.lookups }

  /// Resolves a name from the table.
  package func resolve(_ name: String, fresh: Bool) async throws(NetOptError) -> ResolvedAddresses {
    let outcome: Outcome? = state.update { state in
      guard !state.isShutDown else { return nil }
      state.lookups.append(Lookup(name, fresh: fresh))
      return state.outcomes[name] ?? state.others
    }
    switch outcome {
    case nil: throw Self.shutDown
    case .addresses(let addresses): return ResolvedAddresses(addresses, timeToLive: timeToLive)
    case .notFound:
      throw NetOptError(.nameNotFound, phase: .resolve, "the stub knows no address of \(name)")
    case .failure:
      throw NetOptError(
        .resolverFailed, phase: .resolve, "the stub has no answer for \(name)", isRetryable: true)
    case .silence:
      state.update { $0.underWay += 1 }
      let wasShutDown = await state.wait { $0.isShutDown }
      state.update { $0.underWay -= 1 }
      throw wasShutDown
        ? Self.shutDown
        : NetOptError(.cancelled, phase: .resolve, "the look-up of \(name) was cancelled")
    }
  }

  /// Fails the look-ups under way, and returns when all of them have ended.
  package func shutdown() async {
    state.update { $0.isShutDown = true }
    _ = await state.wait { $0.underWay == 0 }
  }

  /// The error of look-ups after `shutdown`.
  private static let shutDown = NetOptError(.shutDown, phase: .resolve, "the resolver has been shut down")
}
