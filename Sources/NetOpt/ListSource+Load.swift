import FoundationEssentials
import NetOptCore
import NetOptRouting

extension ClientConfiguration {
  /// Reads and checks the list.
  ///
  /// - Returns: the list, and a warning when it is of no use any more.
  func loadList() throws(NetOptError) -> (EndpointList?, NetOptError?) {
    let list: EndpointList
    switch self.list {
    case .none: return (nil, nil)
    case .builtIn: list = .builtIn
    case .list(let given): list = given
    case .file(let path):
      let bytes = try FileBytes.read(path, upTo: EndpointList.maximumBytes, as: "the IP list", in: .list)
      var rules = ListRules(now: Date())
      rules.allowPrivateAddresses = allowPrivateAddresses
      rules.allowExpired = true
      list = try EndpointList(bytes, file: path, rules: rules)
    }
    guard list.isExpired(at: Date()), let expires = list.expires else { return (list, nil) }
    let warning = NetOptError(
      .invalidList, phase: .list,
      "the IP list has expired (\(expires.formatted(.iso8601))): requests go over DNS until there is a new one"
    )
    return (list, warning)
  }

  /// Looks whether the file with the authorities is one: otherwise it would show at the first handshake.
  ///
  /// - Throws: `invalidConfiguration`.
  func checkAuthorities() throws(NetOptError) {
    guard let path = tls.caFile else { return }
    let bytes: [UInt8]
    do throws(NetOptError) {
      // Bundles have some hundred kilobytes.
      bytes = try FileBytes.read(path, upTo: 1 << 24, as: "the file with the authorities", in: .tls)
    } catch {
      throw NetOptError(.invalidConfiguration, phase: .tls, error.message, underlying: error.underlying)
    }
    // RFC 7468, and the form that OpenSSL writes for certificates with trust settings.
    let marks = ["-----BEGIN CERTIFICATE-----", "-----BEGIN TRUSTED CERTIFICATE-----"]
    guard marks.contains(where: { bytes.firstRange(of: Array($0.utf8)) != nil }) else {
      throw NetOptError(
        .invalidConfiguration, phase: .tls,
        "\(path) has no certificate in PEM form, so no authority could be trusted; name a file that begins with -----BEGIN CERTIFICATE-----"
      )
    }
  }
}
