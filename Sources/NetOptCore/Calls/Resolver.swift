/// The addresses of a name.
package struct ResolvedAddresses: Hashable, Sendable {
  /// The addresses in the order in which they are to be tried; not empty.
  package var addresses: [IPAddress]
  /// How long they may be kept.
  package var timeToLive: Duration

  /// Makes an answer.
  package init(_ addresses: [IPAddress], timeToLive: Duration) {
    self.addresses = addresses
    self.timeToLive = timeToLive
  }
}

/// Finds the addresses of names.
package protocol Resolver: Sendable {
  /// Looks a name up.
  ///
  /// - Parameter fresh: whether cached answers are passed over.
  /// - Throws: `nameNotFound` or `resolverFailed`; `cancelled` when the task was, which ends this look-up alone.
  func resolve(_ name: String, fresh: Bool) async throws(NetOptError) -> ResolvedAddresses

  /// This machine is in another network: its name servers may be others, and may answer otherwise. The default does
  /// nothing.
  func networkChanged()

  /// Fails what is under way and returns when nothing of it is left.
  func shutdown() async
}

extension Resolver {
  /// Does nothing.
  package func networkChanged() {}
}

/// What a plan's DNS leg becomes when its turn has come.
package protocol LegSource: Sendable {
  /// Looks an origin's host up.
  ///
  /// - Parameter fresh: whether cached answers are passed over.
  /// - Returns: a leg for each address, in the order in which they are to be tried; not empty.
  /// - Throws: as `Resolver.resolve`.
  func legs(for origin: Origin, fresh: Bool) async throws(NetOptError) -> [RoutePlan.Leg]
}
