import Glibc
import NetOptCore
import NetOptRouting
import NetOptSigning
import NetOptTestSupport
import TestTools

@testable import NetOpt

/// A random valid configuration file.
struct SettingDocument {
  /// The values of the settings in the file, by the index of their sample in `SettingSample.all`.
  private(set) var values: [Int: JSONValue] = [:]

  /// The environment of the files: a proxy, a passphrase, passwords, a token and fields, all of which contain
  /// `hunter2`.
  static let environment = [
    "PROXY": SettingSample.proxy, "PHRASE": SettingSample.passphrase, "OTLP": SettingSample.collectorFields,
  ]
  .merging(SettingSample.secrets) { $1 }

  /// Draws about a third of the settings.
  init(_ random: inout SplitMix64) {
    for (index, sample) in SettingSample.all.enumerated() where random.isOne(in: 3) {
      values[index] = sample.draw(&random)
    }
    drop("proxy", with: "proxy_env")
    for prefix in ["tls/", "tls/hosts/api.test/"] {
      drop(prefix + "ca_pem", with: prefix + "ca_file")
      let certificate = prefix + "client_certificate/"
      drop(certificate + "certificate_file", with: certificate + "pkcs12_file")
      drop(certificate + "key_file", with: certificate + "pkcs12_file")
      if !has(certificate + "certificate_file"), !has(certificate + "pkcs12_file") {
        remove(certificate + "key_file", certificate + "passphrase_env")
      }
    }
    for (index, sample) in SettingSample.all.enumerated()
    where sample.path.starts(with: ["cache", "mode", "api"]) {
      if SettingSample.all.contains(where: {
        $0.path.starts(with: ["cache", "mode", "versioned"]) && has($0)
      }) {
        values[index] = nil
      }
    }
    completeSigning(&random)
    completeAuthorization(&random)
    if hasAny("telemetry") { require(["telemetry/collector", "telemetry/service_name"], &random) }
  }

  /// Adds what the entries of `authorization` need, and drops what they cannot have together.
  private mutating func completeAuthorization(_ random: inout SplitMix64) {
    let count = hasAny("authorization", "[1]") ? 2 : hasAny("authorization", "[0]") ? 1 : 0
    for index in 0..<count {
      let prefix = "authorization/[\(index)]/"
      var needed = [prefix + "hosts"]
      if hasAny("authorization", "[\(index)]", "basic") {
        needed += [prefix + "basic/user", prefix + "basic/password_env"]
        remove(prefix + "bearer_env")
      } else {
        needed.append(prefix + "bearer_env")
      }
      require(needed, &random)
    }
  }

  /// Adds the settings with these paths, unless the file has them.
  private mutating func require(_ paths: [String], _ random: inout SplitMix64) {
    for index in paths.compactMap({ self.index($0) }) where values[index] == nil {
      values[index] = SettingSample.all[index].draw(&random)
    }
  }

  /// Adds what signing needs, or drops it.
  private mutating func completeSigning(_ random: inout SplitMix64) {
    let samples = SettingSample.all.enumerated().filter { $0.element.path[0] == "signing" }
    guard samples.contains(where: { has($0.element) }) else { return }
    for (index, sample) in samples where values[index] == nil {
      let key = sample.path[1]
      let isWeak = values.values.contains("salted-md5")
      if ["keys_file", "key_id", "hosts"].contains(key) || key == "allow_weak" && isWeak {
        values[index] = sample.draw(&random)
      }
    }
  }

  private func has(_ sample: SettingSample) -> Bool { has(sample.path.joined(separator: "/")) }
  private func has(_ path: String) -> Bool { index(path).flatMap { values[$0] } != nil }

  private func index(_ path: String) -> Int? {
    SettingSample.all.firstIndex { $0.path.joined(separator: "/") == path }
  }

  private mutating func remove(_ paths: String...) {
    for path in paths { index(path).map { values[$0] = nil } }
  }
  private mutating func drop(_ path: String, with other: String) { if has(other) { remove(path) } }

  /// The JSON of the file.
  var json: JSONValue {
    var root: JSONValue = ["schema_version": 1]
    for (index, sample) in SettingSample.all.enumerated() {
      if let value = values[index] { root.insert(value, at: sample.path[...]) }
    }
    return root
  }

  /// Whether the file has a setting whose path begins with these keys.
  func hasAny(_ keys: String...) -> Bool {
    values.keys.contains { SettingSample.all[$0].path.starts(with: keys) }
  }
}

extension JSONValue {
  /// Adds a value to an object, with the objects and arrays on its path.
  fileprivate mutating func insert(_ value: JSONValue, at path: ArraySlice<String>) {
    if let key = path.first, key.hasPrefix("[") {
      var elements: [JSONValue] = []
      if case .array(let values) = self { elements = values }
      if key == "[\(elements.count)]" { elements.append([:]) }
      elements[elements.count - 1].insert(value, at: path.dropFirst())
      return self = .array(elements)
    }
    guard case .object(var members) = self, let key = path.first else { return }
    if let index = members.firstIndex(where: { $0.name == key }) {
      members[index].value.insert(value, at: path.dropFirst())
    } else if path.count == 1 {
      members.append(Member(key, value))
    } else {
      var object: JSONValue = [:]
      object.insert(value, at: path.dropFirst())
      members.append(Member(key, object))
    }
    self = .object(members)
  }

  /// Every path to a value in this value, as indices of members and elements. The empty path is first.
  var places: [[Int]] {
    let children: [JSONValue] =
      switch self {
      case .array(let values): values
      case .object(let members): members.map(\.value)
      default: []
      }
    return [[]] + children.enumerated().flatMap { index, child in child.places.map { [index] + $0 } }
  }

  /// The value at a place.
  subscript(place: ArraySlice<Int>) -> JSONValue {
    get {
      guard let first = place.first else { return self }
      switch self {
      case .array(let values): return values[first][place.dropFirst()]
      case .object(let members): return members[first].value[place.dropFirst()]
      default: return .null
      }
    }
    set {
      guard let first = place.first else { return self = newValue }
      switch self {
      case .array(var values):
        values[first][place.dropFirst()] = newValue
        self = .array(values)
      case .object(var members):
        members[first].value[place.dropFirst()] = newValue
        self = .object(members)
      default: break
      }
    }
  }
}

/// A text that differs for configurations with different settings.
enum SettingFingerprint {
  static func text(_ value: Any) -> String {
    switch value {
    case let certificate as ClientCertificate:
      return "\(certificate.form) \((try? certificate.passphrase?()) ?? "none")"
    case let proxy as ClientConfiguration.Proxy: if case .url(let url) = proxy { return url }
    case let signer as RequestSigner: return "\(signer.key.id) \(String(reflecting: signer.scheme))"
    case let text as String: return text.debugDescription
    case let fields as HeaderFields:
      return fields.map { "\($0.name.debugDescription) \($0.value.debugDescription)" }.joined()
    case let url as HTTPURL: return url.description
    case let setting as ClientConfiguration.Authorization:
      return "\(setting.hosts.sorted()) \(setting.value ?? "") \(setting.allowsUnprotected)"
    case let setting as ClientConfiguration.Telemetry:
      let resource = setting.resource.sorted { $0.key < $1.key }
      return
        "\(setting.collector) \(setting.serviceName.debugDescription) \(resource) \(text(setting.headers))"
        + " \(setting.sampledShare)"
    case let names as Set<String>: return "\(names.sorted())"
    case let pins as [String: [String]]: return "\(pins.sorted { $0.key < $1.key })"
    case let hosts as [String: ClientConfiguration.TLS]:
      return hosts.sorted { $0.key < $1.key }.map { "\($0.key): \(text($0.value))" }.joined()
    default: break
    }
    let children = Mirror(reflecting: value).children
    if children.isEmpty { return "\(value)" }
    return "(" + children.map { "\($0.label ?? "") \(text($0.value))" }.joined(separator: ", ") + ")"
  }

  /// Another text for a JSON document with another meaning; `nil` for a text that is not JSON.
  static func text(json bytes: [UInt8]) -> String? {
    var faults = FaultReport()
    guard let document = JSONDocument.read(bytes, &faults), faults.faults.isEmpty else { return nil }
    return text(document.root)
  }

  private static func text(_ element: JSONElement) -> String {
    switch element.kind {
    case .object:
      var members: [(String, String)] = []
      element.forEachMember { key, value in
        // A URL has more than one form: its host may be in capitals.
        let isURL = key.text == "base_url" || key.text == "collector"
        let url = isURL ? value.text.flatMap { try? HTTPURL($0).description } : nil
        members.append((key.text ?? "", url?.debugDescription ?? text(value)))
      }
      return "{\(members.sorted { $0.0 < $1.0 })}"
    case .array:
      var elements: [String] = []
      element.forEachElement {
        elements.append(text($0))
        return true
      }
      return "\(elements)"
    case .string: return (element.text ?? "").debugDescription
    case .number:
      let digits = String(decoding: element.bytes, as: UTF8.self)
      return element.integer.map(String.init) ?? Double(digits).map { "\($0)" } ?? digits
    case .true, .false, .null: return "\(element.kind)"
    }
  }
}

/// A folder with the key ring that `SettingDocument` names.
enum SettingFolder {
  static func make() throws -> String {
    let folder = try TemporaryDirectory.make("configuration")
    let keys = ["k1", "k2"].map {
      #"{"id":"\#($0)","secret":"hunter2 key","legacy":true,"schemes":["netopt1","rfc9421","sigv4","salted-md5"]}"#
    }
    try TextFile.write(#"{"schema":1,"keys":[\#(keys.joined(separator: ","))]}"#, to: folder + "/keys.json")
    chmod(folder + "/keys.json", 0o600)
    return folder
  }
}
