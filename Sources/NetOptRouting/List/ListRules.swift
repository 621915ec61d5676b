package import FoundationEssentials

/// The requirements for an IP list beyond its format.
package struct ListRules: Hashable, Sendable {
  /// Whether the list may contain addresses that are not globally reachable: private, loopback, link-local
  /// and similar ones (`IPAddress.Scope`). Default: no, because a list from elsewhere must not lead into the
  /// caller's network.
  package var allowPrivateAddresses: Bool
  /// Whether a list that is past its `expires` is accepted. Default: no. A client sets this
  /// to yes, to tell an expired list from a broken one: with an expired list, requests use DNS.
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
