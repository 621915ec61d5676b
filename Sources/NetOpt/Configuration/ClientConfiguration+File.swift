public import NetOptCore

extension ClientConfiguration {
  /// Reads a configuration from a JSON file (docs/configuration.md, docs/schemas/config.schema.json) and from
  /// environment variables: `NETOPT_REGION`, `NETOPT_ISP`, `NETOPT_POLICY`, `NETOPT_IPLIST`,
  /// `NETOPT_TRUSTED_KEYS`, `NETOPT_DNS_SERVERS` and `NETOPT_CACERT`. A variable that is not empty takes
  /// precedence over the file. A setting that is in neither of them has its default.
  ///
  /// ```json
  /// { "schema_version": 1, "list": { "file": "iplist.json" }, "dns": { "timeout_ms": 300 } }
  /// ```
  ///
  /// Reads the key ring of `signing` and the files of `trusted_keys` too. The client reads all other files
  /// when it is made.
  ///
  /// - Parameters:
  ///   - path: the path of the file, at most 1 MiB. Relative paths in the file begin in its folder.
  ///   - environment: the environment variables by name; `nil`, the default, for those of the process.
  /// - Throws: `unreadableFile`; `invalidConfiguration` with the place in the file and the rule that it
  ///   breaks. No message contains a secret.
  public init(file path: String, environment: [String: String]? = nil) throws(NetOptError) {
    let environment = environment ?? ProcessEnvironment.variables
    let bytes = try FileBytes.read(
      path, upTo: ConfigurationFile.maximumBytes, as: "the configuration", in: .list)
    let file = ConfigurationFile(bytes, folder: FileBytes.folder(of: path), environment: environment)
    guard let fault = file.faults.first else {
      self = file.configuration
      return
    }
    let count = file.faultCount - 1
    let others = count == 0 ? "" : "; `netopt config check` shows \(count) more"
    throw NetOptError(
      .invalidConfiguration, phase: .list,
      "the configuration \(FileBytes.shown(path)) is not usable: \(fault)\(others)")
  }
}
