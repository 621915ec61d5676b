package import FoundationEssentials

/// What is demanded of an IP list beyond its format.
package struct ListRules: Hashable, Sendable {
  /// Whether addresses that are not reachable from everywhere may stand in the list: private, loopback, link-local
  /// and the like (`IPAddress.Scope`). Default: no; a list from elsewhere must not lead into the caller's network.
  package var allowPrivateAddresses: Bool
  /// Whether a list that is past its `expires` is read all the same. Default: no. A client sets it, to tell an
  /// expired list, which turns direct mode off, from a broken one.
  package var allowExpired: Bool
  /// The present moment, which `expires` is held against.
  package var now: Date

  /// Makes rules.
  package init(allowPrivateAddresses: Bool = false, allowExpired: Bool = false, now: Date) {
    self.allowPrivateAddresses = allowPrivateAddresses
    self.allowExpired = allowExpired
    self.now = now
  }
}
