import NetOptCore
import NetOptEngine
import NetOptRouting

extension ClientConfiguration {
  /// Replaces settings by the values of environment variables. Reads the variables of netopt's commands that
  /// correspond to client settings. An empty variable counts as unset. Relative paths begin in the working
  /// directory.
  mutating func read(variables report: SettingReport) {
    /// Calls the closure with the value of a variable that is set.
    func variable(_ name: String, _ read: (String) -> Void) {
      guard let value = report.environment[name], !value.isEmpty else { return }
      if SlowText.hasLongRun(value) { return report.refuse(name, SlowText.violation) }
      read(value)
    }
    variable("NETOPT_REGION") {
      routing.region = $0
      report.change("$.routing.region", .string($0), by: "NETOPT_REGION")
    }
    variable("NETOPT_ISP") {
      routing.isp = $0
      report.change("$.routing.isp", .string($0), by: "NETOPT_ISP")
    }
    variable("NETOPT_POLICY") {
      guard let policy = SelectionPolicy(rawValue: $0) else {
        let known = SelectionPolicy.allCases.map(\.rawValue).joined(separator: ", ")
        return report.refuse("NETOPT_POLICY", "is not a policy; allowed: \(known)")
      }
      routing.policy = policy
      report.change(
        "$.routing.policy", .string($0), by: "NETOPT_POLICY",
        isDefault: policy == RoutingConfiguration().policy)
    }
    variable("NETOPT_IPLIST") {
      list = .file($0)
      report.change("$.list.file", .string($0), by: "NETOPT_IPLIST", replacing: "$.list")
    }
    variable("NETOPT_TRUSTED_KEYS") { setTrustedKeys($0, report) }
    variable("NETOPT_DNS_SERVERS") {
      let servers = Self.words($0)
      guard servers.allSatisfy(ResolverConfiguration.isServer), !servers.isEmpty else {
        return report.refuse("NETOPT_DNS_SERVERS", "is not a list of \(DNS.serverForms), separated by commas")
      }
      dns.servers = servers
      report.change("$.dns.servers", .array(servers.map(JSONValue.string)), by: "NETOPT_DNS_SERVERS")
    }
    variable("NETOPT_CACERT") {
      (tls.caFile, tls.caBytes) = ($0, nil)
      report.change("$.tls.ca_file", .string($0), by: "NETOPT_CACERT", replacing: "$.tls.ca_pem")
    }
  }

  private mutating func setTrustedKeys(_ text: String, _ report: SettingReport) {
    let name = "NETOPT_TRUSTED_KEYS"
    var keys: [MinisignPublicKey] = []
    for word in Self.words(text) {
      do throws(NetOptError) { keys.append(try Self.key(word) { $0 }) } catch {
        return report.refuse(name, error.message)
      }
    }
    // A user who sets the variable wants signatures to be verified. Without keys, the client verifies none.
    guard !keys.isEmpty else { return report.refuse(name, "has no key") }
    trustedKeys = keys
    report.change("$.trusted_keys", .array(keys.map { .string($0.description) }), by: name)
  }

  /// Splits a text at commas, and removes spaces around the parts.
  private static func words(_ text: String) -> [String] {
    text.split(separator: ",").map { String(decoding: ByteClass.trimmed(Array($0.utf8)), as: UTF8.self) }
  }
}
