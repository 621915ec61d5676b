/// The result of a DNS look-up.
package struct ResolvedAddresses: Hashable, Sendable {
  /// The addresses in the order in which the race tries them. Not empty.
  package var addresses: [IPAddress]
  /// How long the addresses may be cached, from the moment when the resolver returned them. For addresses
  /// from the resolver's cache, this is the rest of their time to live.
  package var timeToLive: Duration

  /// Creates a result.
  package init(_ addresses: [IPAddress], timeToLive: Duration) {
    self.addresses = addresses
    self.timeToLive = timeToLive
  }
}

/// Resolves host names to addresses.
package protocol Resolver: Sendable {
  /// Looks up the addresses of a name.
  ///
  /// - Parameter fresh: whether to ask DNS even if there is a cached result.
  /// - Throws: `nameNotFound` or `resolverFailed`; `cancelled` if the task was cancelled. The cancellation
  ///   does not affect other callers that wait for the addresses of the name.
  func resolve(_ name: String, fresh: Bool) async throws(NetOptError) -> ResolvedAddresses

  /// Reports that this machine has joined another network, whose name servers may differ. The default
  /// implementation does nothing.
  func networkChanged()

  /// Fails all look-ups under way and returns when they have ended.
  func shutdown() async
}

extension Resolver {
  /// The default: does nothing.
  package func networkChanged() {}
}

/// Turns the DNS leg of a plan into legs to addresses, when the race starts the DNS leg.
package protocol LegSource: Sendable {
  /// Looks up the host of an origin in DNS.
  ///
  /// - Parameter fresh: whether to ask DNS even if there is a cached result.
  /// - Returns: one leg for each address, in the order in which to try them. Not empty.
  /// - Throws: the errors of `Resolver.resolve`.
  func legs(for origin: Origin, fresh: Bool) async throws(NetOptError) -> [RoutePlan.Leg]
}
