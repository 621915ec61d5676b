import FoundationEssentials
import NetOptCore
import TestTools
import Testing

@testable import NetOpt

/// Tests that every setting of `ClientConfiguration` is in the configuration file, its schema and its
/// documentation, or is meant only for code.
@Suite struct ConfigurationKeysTests {
  /// The settings that a file cannot have, because they are code.
  private static let codeOnly: Set = ["interceptors", "observers", "listObservers", "warningHandler"]
  /// The settings that only contain other settings.
  private static let containers: Set = [
    "listUpdates", "routing", "probing", "dns", "tls", "connections", "cache", "signing", "TLS.hosts",
    "Cache.options", "defaults", "telemetry",
  ]

  /// The properties of a type and of the types in it, as docs/api has them.
  private static func properties(_ module: String, _ type: String) throws -> [String] {
    try RepositoryFile.text("docs/api/\(module).txt").split(separator: "\n").compactMap { line in
      guard let colon = line.firstIndex(of: ":"), line[colon...].hasPrefix(": var "),
        line.hasPrefix(type + "."), !line.contains("{ get }")
      else { return nil }
      return String(line[..<colon])
    }
  }

  @Test("each property of the configuration can be set in a file, unless it is code")
  func properties() throws {
    let own = try Self.properties("NetOpt", "ClientConfiguration").map {
      String($0.dropFirst("ClientConfiguration.".count))
    }
    let others =
      try Self.properties("NetOptRouting", "RoutingConfiguration")
      + Self.properties("NetOptCore", "CacheOptions.Declaration")
      + Self.properties("NetOptCore", "CacheOptions.Versions")
    #expect(own.count > 60 && others.count == 10)
    let inFile = Set(SettingSample.all.map(\.property))
    let all = Set(own + others)
    #expect(all.subtracting(inFile).subtracting(Self.codeOnly).subtracting(Self.containers).isEmpty)
    // Nothing is listed that no longer exists.
    #expect(inFile.union(Self.codeOnly).union(Self.containers).subtracting(all) == [])
  }

  /// A value of the schema.
  private indirect enum Schema: Decodable {
    case object([String: Schema])
    case array([Schema])
    case text(String)
    case other

    init(from decoder: any Decoder) throws {
      if let members = try? [String: Schema](from: decoder) {
        self = .object(members)
      } else if let elements = try? [Schema](from: decoder) {
        self = .array(elements)
      } else if let text = try? String(from: decoder) {
        self = .text(text)
      } else {
        self = .other
      }
    }

    subscript(key: String) -> Schema? { if case .object(let members) = self { members[key] } else { nil } }

    /// The paths of the settings below this schema, `path` included.
    func paths(_ path: [String], in root: Schema) -> [[String]] {
      var schema = self
      if case .text(let reference)? = self["$ref"] {
        schema = root["$defs"]?[String(reference.dropFirst("#/$defs/".count))] ?? .other
      }
      var found: [[String]] = []
      if case .object(let members)? = schema["properties"] {
        for (key, member) in members { found += member.paths(path + [key], in: root) }
      }
      if let members = schema["additionalProperties"], case .object = members {
        found += members.paths(path + ["api.test"], in: root)
      }
      if let elements = schema["items"], elements["properties"] != nil {
        found += elements.paths(path + ["[]"], in: root)
      }
      if case .array(let choices)? = schema["oneOf"] {
        for choice in choices where choice["type"] != nil { found += choice.paths(path, in: root) }
      }
      return found.isEmpty ? [path] : found
    }
  }

  @Test("the schema has the settings that the reader has")
  func schema() throws {
    let data = Data(try RepositoryFile.bytes("docs/schemas/config.schema.json"))
    let root = try JSONDecoder().decode(Schema.self, from: data)
    let inSchema = Set(root.paths([], in: root).map { $0.joined(separator: "/") })
    let inReader = Set(SettingSample.all.map { $0.keys.joined(separator: "/") })
    #expect(inSchema.symmetricDifference(inReader) == ["schema_version"])
  }

  @Test("docs/configuration.md has a row for each setting, and its example is valid")
  func documentation() throws {
    let text = try RepositoryFile.text("docs/configuration.md")
    for sample in SettingSample.all where !sample.path.starts(with: ["tls", "hosts"]) {
      let key = sample.keys.filter { $0 != "api.test" }.joined(separator: ".").replacing(".[]", with: "[]")
      #expect(text.contains("\n| `\(key)` |"), "\(key)")
    }
    let example = try #require(text.firstMatch(of: /```json\n([^`]*)```/)?.output.1)
    let folder = try SettingFolder.make()
    let environment = [
      "CLIENT_KEY_PASSPHRASE": "x", "PROXY_URL": "http://proxy.test", "MIRROR_PASSWORD": "x",
      "API_TOKEN": "x",
    ]
    let file = ConfigurationFile(Array(example.utf8), folder: folder, environment: environment)
    #expect(file.faults.isEmpty)
  }
}
