package import FoundationEssentials

/// The requirements for an IP list that depend on the caller and the moment, not on the format.
package struct ListRules: Hashable, Sendable {
  /// Whether the list may contain addresses that are not globally reachable: private, loopback, link-local
  /// and similar ones (`IPAddress.Scope`). Default: false, because a list from elsewhere must not lead
  /// requests into the caller's own network.
  package var allowPrivateAddresses: Bool
  /// Whether an expired list is valid. Default: false. When a client starts, it accepts an expired configured
  /// list and an expired copy: as long as the list in use has expired, requests use DNS.
  package var allowExpired: Bool
  /// The present moment as a calendar date. A list is expired when its `expires` is not later.
  package var now: Date

  /// Makes rules.
  package init(allowPrivateAddresses: Bool = false, allowExpired: Bool = false, now: Date) {
    self.allowPrivateAddresses = allowPrivateAddresses
    self.allowExpired = allowExpired
    self.now = now
  }
}
