package import NetOptCore

/// The targets of a run, selected from the list and the URL.
package struct TargetSelection: Sendable {
  /// The targets: the addresses in the order of the list, then DNS.
  package let targets: [BenchTarget]
  /// Warnings about requested targets that are not in `targets`.
  package let warnings: [BenchWarning]

  /// Selects the targets.
  ///
  /// - Parameters:
  ///   - kinds: the requested kinds of targets.
  ///   - family: the only address family to use, or `nil` for both families.
  ///   - origin: the origin of the URL.
  ///   - listed: the list's endpoints for the URL's host, or `nil` when the list does not contain the host.
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
