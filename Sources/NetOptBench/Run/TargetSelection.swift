package import NetOptCore

/// Selects the targets of a run: addresses of the list for the URL's host, and DNS.
package struct TargetSelection: Sendable {
  /// The targets: the addresses in the order of the list, then DNS.
  package let targets: [BenchTarget]
  /// The reasons why there are no targets of the list although the user asked for them.
  package let warnings: [BenchWarning]

  /// Selects the targets.
  ///
  /// - Parameters:
  ///   - kinds: the kinds of targets that the user asked for.
  ///   - family: the address family of the targets of the list; `nil` for both families.
  ///   - origin: the origin of the URL.
  ///   - listed: the endpoints of the URL's host in the list; `nil` when the list does not contain the host.
  package init(
    _ kinds: Set<BenchTarget.Kind>, family: IPAddress.Family?, origin: Origin, listed: [BenchTarget]?
  ) {
    var targets: [BenchTarget] = []
    var warnings: [BenchWarning] = []
    if kinds.contains(.ip) {
      let usable = (listed ?? []).filter { $0.port == origin.port }
      targets = usable.filter { family == nil || $0.address?.family == family }
      if listed == nil {
        warnings.append(
          BenchWarning(
            "no-list", "the IP list does not contain \(origin.host); give another list with --iplist"))
      } else if let other = listed?.first, usable.isEmpty {
        warnings.append(
          BenchWarning(
            "list-port",
            "the IP list has \(origin.host) at port \(other.port), not \(origin.port): bench does not measure its addresses"
          ))
      } else if targets.isEmpty {
        warnings.append(
          BenchWarning("list-family", "the IP list has no address of the wanted family for \(origin.host)"))
      }
    }
    if kinds.contains(.dns) { targets.append(.dns(port: origin.port)) }
    self.targets = targets
    self.warnings = warnings
  }
}
