import CAres
import NetOptCore

/// Converts the status codes of c-ares (ares_strerror(3)) to errors. No other code interprets these codes.
/// Also makes the errors of look-ups that never reach c-ares.
enum AresStatus {
  /// The error of a look-up that ended with a status.
  ///
  /// - Parameters:
  ///   - status: a status of c-ares other than success.
  ///   - name: the name that was looked up.
  ///   - servers: the configured name servers. Empty for the system's name servers.
  static func error(_ status: Int32, name: String, servers: [IPEndpoint]) -> NetOptError {
    let asked = servers.map(\.description).joined(separator: ", ")
    let toCheck =
      servers.isEmpty
      ? "check the name servers in /etc/resolv.conf" : "check the configured name servers (\(asked))"
    let nobody = servers.isEmpty ? "none of the system's name servers" : "no name server"
    switch status {
    case netopt_ares_name_not_found:
      let by = servers.isEmpty ? "" : " to \(asked)"
      return make(.nameNotFound, status, "\(name) is not known\(by); check the name")
    case netopt_ares_no_data:
      return make(.nameNotFound, status, "\(name) has no address; check the name, or its A and AAAA records")
    case netopt_ares_bad_name:
      return make(.nameNotFound, status, "\(name) is not a valid DNS name; check the name")
    case netopt_ares_timeout:
      return make(.resolverFailed, status, "\(nobody) answered for \(name) in time; \(toCheck)")
    case netopt_ares_connection_refused:
      return make(.resolverFailed, status, "\(nobody) could be reached for \(name); \(toCheck)")
    case netopt_ares_server_failure:
      return make(.resolverFailed, status, "\(nobody) could resolve \(name) (SERVFAIL); \(toCheck)")
    case netopt_ares_refused:
      return make(.resolverFailed, status, "\(nobody) accepted the query for \(name) (REFUSED); \(toCheck)")
    case netopt_ares_destruction, netopt_ares_cancelled:
      return shutDown
    default:
      return make(
        .resolverFailed, status,
        "looking up \(name) failed (\(String(cString: ares_strerror(status)))); \(toCheck)")
    }
  }

  /// The error of a look-up for which c-ares's library or channel could not be set up.
  static func setUpError(_ status: Int32) -> NetOptError {
    make(.resolverFailed, status, "c-ares could not be set up; check /etc/resolv.conf and the memory limit")
  }

  /// The error of a look-up that the shutdown of the resolver ends, or that starts after the shutdown.
  static let shutDown = NetOptError(
    .shutDown, phase: .resolve, "the client has been shut down and resolves no more names")

  /// The error of a look-up whose name breaks the rules for host names.
  ///
  /// - Parameters:
  ///   - text: the invalid name.
  ///   - fault: the broken rule, as the end of a sentence.
  static func noName(_ text: String, _ fault: String) -> NetOptError {
    NetOptError(.nameNotFound, phase: .resolve, "\"\(text)\" cannot be looked up: \(fault)")
  }

  private static func make(_ code: NetOptError.Code, _ status: Int32, _ message: String) -> NetOptError {
    NetOptError(
      code, phase: .resolve, message,
      underlying: NetOptError.Underlying(.ares, code: status, text: String(cString: ares_strerror(status))),
      isRetryable: code == .resolverFailed)
  }
}
