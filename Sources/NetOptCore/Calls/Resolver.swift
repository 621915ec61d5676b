/// The result of a DNS look-up.
package struct ResolvedAddresses: Hashable, Sendable {
  /// The addresses in the order in which to try them. Not empty.
  package var addresses: [IPAddress]
  /// How long the addresses may be cached.
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
  /// - Parameter fresh: whether to ignore cached results.
  /// - Throws: `nameNotFound` or `resolverFailed`; `cancelled` if the task was cancelled. Cancellation ends
  ///   only this look-up.
  func resolve(_ name: String, fresh: Bool) async throws(NetOptError) -> ResolvedAddresses

  /// Reports that this machine has joined another network, whose name servers may differ. The default
  /// implementation does nothing.
  func networkChanged()

  /// Fails all look-ups under way and returns when they have ended.
  func shutdown() async
}

extension Resolver {
  /// Does nothing.
  package func networkChanged() {}
}

/// Resolves the DNS leg of a plan when the leg starts.
package protocol LegSource: Sendable {
  /// Looks up the host of an origin.
  ///
  /// - Parameter fresh: whether to ignore cached results.
  /// - Returns: one leg for each address, in the order in which to try them. Not empty.
  /// - Throws: the errors of `Resolver.resolve`.
  func legs(for origin: Origin, fresh: Bool) async throws(NetOptError) -> [RoutePlan.Leg]
}
