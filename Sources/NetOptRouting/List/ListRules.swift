package import FoundationEssentials

/// The requirements for an IP list beyond its format.
package struct ListRules: Hashable, Sendable {
  /// Whether the list may contain addresses that are not globally reachable: private, loopback, link-local
  /// and similar ones (`IPAddress.Scope`). Default: no, because a list from elsewhere must not lead into the
  /// caller's network.
  package var allowPrivateAddresses: Bool
  /// Whether the list may have expired. Default: no. A client sets this to yes, so that an expired list is no
  /// fault: as long as the list in use has expired, requests use DNS.
  package var allowExpired: Bool
  /// The present moment, against which `expires` is checked.
  package var now: Date

  /// Makes rules.
  package init(allowPrivateAddresses: Bool = false, allowExpired: Bool = false, now: Date) {
    self.allowPrivateAddresses = allowPrivateAddresses
    self.allowExpired = allowExpired
    self.now = now
  }
}
