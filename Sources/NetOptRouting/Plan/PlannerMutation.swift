/// A way in which the policy is made wrong, to see that the simulator notices. Only the simulator sets one.
package enum PlannerMutation: String, Sendable, CaseIterable {
  /// A circuit that has opened lets no attempt through.
  case noHalfOpen = "no-half-open"
  /// A failure is taken for a connection that was ready at once.
  case failureLooksFast = "failure-looks-fast"
  /// The fastest leads, by however little.
  case noHysteresis = "no-hysteresis"
  /// A failure is held against nobody.
  case noBlame = "no-blame"
  /// Every client takes the very fastest.
  case noSpread = "no-spread"
  /// DNS is no leg.
  case noLookUp = "no-look-up"
  /// How long answers take is not looked at.
  case noFirstByte = "no-first-byte"
  /// An endpoint that looked slow once is never looked at again.
  case noProbes = "no-probes"
  /// An endpoint is due for a probe whenever that is asked.
  case endlessProbes = "endless-probes"
  /// What fails with the network is held against the endpoints.
  case noNetwork = "no-network"
  /// Requests that wait for their answers are not looked at.
  case noWaits = "no-waits"
  /// An endpoint that asks for a rest gets none.
  case noRest = "no-rest"
  /// A wrong certificate keeps an endpoint out for ten minutes.
  case longQuarantine = "long-quarantine"
  /// A wrong certificate is checked every second.
  case steadyChecks = "steady-checks"
  /// A connection that nobody verified ends a quarantine.
  case unverifiedRelease = "unverified-release"
}
