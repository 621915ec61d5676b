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
}
