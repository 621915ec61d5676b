import NetOptCore
import NetOptRouting
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOpt

/// Tests of `ConfigurationFile` with random files: what the file says is what the client gets, and a file is
/// never partly ignored.
@Suite struct ConfigurationFileTests {
  private let folder: String

  init() throws { folder = try SettingFolder.make() }

  private func read(_ bytes: [UInt8]) -> ConfigurationFile {
    ConfigurationFile(bytes, folder: folder, environment: SettingDocument.environment)
  }

  /// The configuration whose settings a file leaves at their defaults.
  private func defaults(_ document: SettingDocument) -> ClientConfiguration {
    var configuration = ClientConfiguration()
    if document.hasAny("cache") { configuration.cache = .init() }
    if document.hasAny("cache", "mode", "api") {
      configuration.cache?.options.mode = .api(.init(timeToLive: nil))
    }
    if document.hasAny("cache", "mode", "versioned") {
      configuration.cache?.options.mode = .versioned(.init())
    }
    if document.hasAny("tls", "hosts") { configuration.tls.hosts["api.test"] = .init() }
    return configuration
  }

  /// The value of a setting as it is read back: with resolved paths, and sets in order.
  private func expected(_ value: JSONValue, _ sample: SettingSample) -> JSONValue {
    switch value {
    case .array(let values):
      let all = values.map { expected($0, sample) }
      return .array(
        sample.property.hasSuffix("Fields") ? all.sorted { $0.description < $1.description } : all)
    case .string(let text) where text.hasPrefix("f") && text.hasSuffix(".pem"):
      return .string("\(folder)/\(text)")
    default: return value
    }
  }

  @Test("every setting of a valid file has the value from the file, and all others have their defaults")
  func valuesAreReadBack() {
    var seen: Set<Int> = []
    for seed in 1...600 as ClosedRange<UInt64> {
      var random = SplitMix64(seed: seed)
      let document = SettingDocument(&random)
      let file = read(document.json.bytes(indented: random.isOne(in: 2)))
      #expect(file.faults.isEmpty, "seed \(seed): \(file.faults)")
      let defaults = defaults(document)
      for (index, sample) in SettingSample.all.enumerated() where sample.path != ["signing", "keys_file"] {
        guard let value = document.values[index] else {
          // Two keys set the proxy, and settings of signing have no defaults without a signer.
          if sample.property == "proxy" || sample.path[0] == "signing" { continue }
          #expect(sample.read(file.configuration) == sample.read(defaults), "seed \(seed): \(sample.path)")
          continue
        }
        seen.insert(index)
        #expect(sample.read(file.configuration) == expected(value, sample), "seed \(seed): \(sample.path)")
      }
      // Each setting in the file differs from its default, and the report says so.
      #expect(file.changes.count >= document.values.count / 4, "seed \(seed)")
      #expect(!file.changes.description.contains("hunter2"), "seed \(seed)")
    }
    #expect(seen.count == SettingSample.all.count - 1)
  }

  @Test("a mutated file is refused with a path, or means what it says")
  func mutations() {
    var (refused, changedSettings) = (0, 0)
    for seed in 1...60 as ClosedRange<UInt64> {
      var random = SplitMix64(seed: seed)
      let bytes = SettingDocument(&random).json.bytes()
      let meaning = SettingFingerprint.text(json: bytes)
      let settings = SettingFingerprint.text(read(bytes).configuration)
      for _ in 0..<60 {
        var changed = bytes
        Self.mutate(&changed, &random)
        let file = read(changed)
        let shown = "seed \(seed): \(String(decoding: changed, as: UTF8.self))"
        #expect(!"\(file.faults)".contains("hunter2"), "\(shown)")
        if file.faultCount > 0 {
          refused += 1
          #expect(file.faults.allSatisfy { $0.path.hasPrefix("$") && !$0.message.isEmpty }, "\(shown)")
          continue
        }
        let isSame = SettingFingerprint.text(file.configuration) == settings
        #expect(isSame == (SettingFingerprint.text(json: changed) == meaning), "\(shown)")
        if !isSame { changedSettings += 1 }
      }
    }
    #expect(refused > 1000 && changedSettings > 100)
  }

  /// Changes bytes at one place.
  private static func mutate(_ bytes: inout [UInt8], _ random: inout SplitMix64) {
    let index = Int(random.below(UInt64(bytes.count)))
    let end = min(index + 1 + Int(random.below(12)), bytes.count)
    switch random.below(5) {
    case 0: bytes[index] = UInt8(truncatingIfNeeded: random.next())
    case 1: bytes.removeSubrange(index..<end)
    case 2: bytes.insert(contentsOf: bytes[index..<end], at: index)
    case 3: bytes[index] ^= 1 << UInt8(random.below(8))
    default: bytes.insert(random.element(of: Array("\"%,;:[]{}\\ \0\n9".utf8)), at: index)
    }
  }

  @Test("random bytes and deep or wide JSON are refused at once")
  func anyBytes() {
    var random = SplitMix64(seed: 1)
    for count in [0, 1, 2, 3, 7, 100] {
      for _ in 0..<50 {
        let file = read((0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) })
        #expect(file.faults.contains { $0.path.hasPrefix("$") })
      }
    }
    let start = ContinuousClock.now
    for text in [
      String(repeating: "[", count: 1 << 20),
      "{\"tls\":{\"hosts\":{" + (0..<40_000).map { "\"h\($0)\":{}" }.joined(separator: ",") + "}}}",
      "{" + (0..<60_000).map { "\"setting\($0)\":1" }.joined(separator: ",") + "}",
      "{\"trusted_keys\":[" + (0..<99_999).map { "\"k\($0)\"" }.joined(separator: ",") + "]}",
      "{\"routing\":{\"policy\":\"" + String(repeating: "a", count: 1_000_000) + "\"}}",
      String(repeating: " ", count: (1 << 20) + 1),
    ] {
      let file = read(Array(text.utf8))
      #expect(file.faultCount > 0 && file.faults.count <= 100)
      #expect(file.faults.allSatisfy { $0.message.utf8.count < 4000 && $0.path.utf8.count < 1000 })
    }
    #expect(start.duration(to: .now) < .seconds(20))
  }

  @Test(
    "the schema accepts every valid file, and the reader refuses what the schema refuses",
    .enabled("\(JSONSchema.missing)") { try await JSONSchema.isInstalled() })
  func schema() async throws {
    var valid: [String] = []
    var changed: [String] = []
    for seed in 1...80 as ClosedRange<UInt64> {
      var random = SplitMix64(seed: seed)
      let json = SettingDocument(&random).json
      valid.append(json.description)
      for _ in 0..<5 {
        var copy = json
        let place = random.element(of: json.places)
        let values: [JSONValue] = [
          nil, [:], [], true, false, 0, -1, 1.5, 1_000_000_000_000_000_000, "", "none", "http", ["a", "a"],
          ["a": 1],
        ]
        copy[place[...]] = random.element(of: values)
        changed.append(copy.description)
      }
    }
    let verdicts = try await JSONSchema.faults(of: valid + changed, by: "config")
    #expect(verdicts.prefix(valid.count).filter { !$0.isEmpty } == [])
    for (text, verdict) in zip(changed, verdicts.dropFirst(valid.count)) where !verdict.isEmpty {
      #expect(read(Array(text.utf8)).faultCount > 0, "\(verdict): \(text)")
    }
    #expect(verdicts.filter { !$0.isEmpty }.count > 200)
  }
}
