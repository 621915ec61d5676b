import FoundationEssentials
import Glibc
import NetOptCore
import NetOptCrypto
import NetOptSigning

/// `netopt keys new`: adds a key with a random secret to a key ring.
struct KeysNewCommand: Command {
  private static let id = Option("key-id", takes: .required("ID"), "id of the new key, such as app1.v1")
  private static let schemes = Option(
    "scheme", takes: .required("NAME"), "scheme that can use the key; may be repeated; default: netopt1")
  private static let legacy = Option("legacy", "mark the key as legacy, for weak schemes")
  private static let salt = Option(
    "salt", takes: .required("SALT"), "salt of the key; default: a new random salt")

  let declaration = CommandDeclaration(
    name: "keys new",
    summary: "add a new secret to a key ring",
    details: """
      Generates a secret and adds it to the key ring as a new key. The secret is 24 random bytes, which \
      Base64 writes as 32 characters. If the key ring does not exist, the command creates it, readable only \
      by its owner. The command does not print the secret. To replace a key, add a new version with a new \
      id, such as app1.v2 after app1.v1. Keep both keys until every signer uses the new one, and then remove \
      the old one.
      """,
    operands: "", operandCount: 0...0,
    options: [OptionGroup("Key", [SigningOptions.keys, id, schemes, legacy, salt])],
    examples: [.init("netopt keys new --keys keys.json --key-id app1.v1", "creates a key ring with one key")])

  func run(_ arguments: Arguments, in context: CommandContext) async throws -> ExitCode {
    guard let file = arguments.value(of: SigningOptions.keys) else {
      throw UsageError("--keys FILE is missing")
    }
    guard let name = arguments.value(of: Self.id) else { throw UsageError("--key-id ID is missing") }
    guard (1...64).contains(name.utf8.count), name.utf8.allSatisfy(Self.isIDByte) else {
      throw UsageError("--key-id takes 1 to 64 of the characters A-Z a-z 0-9 . _ -")
    }
    let schemes = arguments.values(of: Self.schemes)
    for scheme in schemes where SchemeName(rawValue: scheme) == nil {
      throw UsageError(
        "--scheme must be \(SchemeName.allCases.map(\.rawValue).joined(separator: ", ")), not \"\(scheme)\"")
    }
    let key = try Self.key(
      name, schemes.isEmpty ? ["netopt1"] : schemes, arguments.value(of: Self.salt),
      arguments.has(Self.legacy))
    guard FileBytes.isName(file) else {
      throw UsageError(
        "--keys takes the name of a file, not the content of a key ring")
    }
    // Another process may add a key at the same time. The lock is on the folder, because the file itself is
    // replaced.
    let lock = try FileLock(
      FileBytes.folder(of: FileBytes.resolved(file)), .folder, as: "the key ring", in: .sign)
    defer { withExtendedLifetime(lock) {} }
    let ring = access(file, F_OK) == 0 ? try KeyRing.load(file) : nil
    if ring?[name] != nil {
      throw UsageError("the key ring already has the key \(name); give the new version a new id")
    }
    let before = ring == nil ? nil : try context.readWhole(file, upTo: 4 << 20, for: .sign)
    let replacement = try FileReplacement(file, mode: 0o600)
    try replacement.write(try Self.text(before, adding: key))
    try replacement.commit()
    context.say("added the key \(name) to \(file)")
    return .ok
  }

  /// Whether a byte may occur in the id of a key: A-Z a-z 0-9 . _ -
  private static func isIDByte(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2d, 0x2e, 0x5f: true
    default: false
    }
  }

  /// Creates the JSON object of a new key with a random secret.
  ///
  /// - Parameter salt: the salt; `nil` for a random one.
  private static func key(
    _ id: String, _ schemes: [String], _ salt: String?, _ isLegacy: Bool
  ) throws -> JSONValue {
    do {
      // The scheme sealed-key uses the text of the secret as an AES-256 key, which has 32 bytes. The Base64
      // text of 24 random bytes (192 bits) has 32 bytes.
      let secret = Base64.text(try randomBytes(24), .url)
      let randomSalt = Base64.text(try randomBytes(9), .url)
      var key: JSONValue = [
        "id": .string(id), "secret": .string(secret), "salt": .string(salt ?? randomSalt),
      ]
      key.append("schemes", .array(schemes.map(JSONValue.string)))
      if isLegacy { key.append("legacy", true) }
      return key
    } catch {
      throw error.netOptError(in: .sign)
    }
  }

  /// Returns the text of a key ring with `key` added at the end of its keys. Changes no other byte, so the
  /// layout of the file stays.
  ///
  /// - Parameter before: the text of the key ring; `nil` to create a new one.
  private static func text(_ before: [UInt8]?, adding key: JSONValue) throws -> [UInt8] {
    guard let before else {
      let ring: JSONValue = ["schema": 1, "keys": [key]]
      return ring.bytes(indented: true) + [0x0a]
    }
    do {
      let root = try JSONDocument.read(SecretBytes(copying: before))
      let closing = try root.required("keys").closing()
      let added = (closing.count > 0 ? ", " : "") + key.description
      return before[..<closing.byte] + Array(added.utf8) + before[closing.byte...]
    } catch {
      throw NetOptError(
        .invalidKeys, phase: .sign, "the key ring is not usable: \(error.location): \(error.rule)")
    }
  }
}

/// `netopt keys list`: prints the keys of a key ring without their secrets.
struct KeysListCommand: Command {
  let declaration = CommandDeclaration(
    name: "keys list",
    summary: "show the keys of a key ring, without their secrets",
    details: "Reads a key ring and prints one line for each key: id, kind, schemes, validity, scopes.",
    operands: "", operandCount: 0...0,
    options: [OptionGroup("Keys", [SigningOptions.keys]), OptionGroup("Output", [.json])],
    examples: [.init("netopt keys list --keys keys.json", "shows the keys of the key ring")])

  func run(_ arguments: Arguments, in context: CommandContext) async throws -> ExitCode {
    let keys = try SigningOptions.ring(arguments).keys
    if arguments.has(.json) {
      try context.print(["schema_version": 1, "keys": .array(keys.map(Self.json))])
    } else {
      try context.output.write(Text.lines(keys.map { Text.printable(Self.text($0)) }))
    }
    return .ok
  }

  private static func json(_ key: SigningKey) -> JSONValue {
    [
      "id": .string(key.id), "kind": .string(key.kind), "salt": .string(key.salt),
      "schemes": .array(key.schemes.map(\.rawValue).sorted().map(JSONValue.string)),
      "legacy": .bool(key.isLegacy), "not_before": .optional(key.notBefore),
      "not_after": .optional(key.notAfter),
      "scopes": .array(key.scopes.map(json)),
    ]
  }

  private static func json(_ scope: KeyScope) -> JSONValue {
    func list(_ texts: [String]?) -> JSONValue { texts.map { .array($0.map(JSONValue.string)) } ?? nil }
    return [
      "hosts": list(scope.hosts), "methods": list(scope.methods), "path_prefixes": list(scope.pathPrefixes),
    ]
  }

  private static func text(_ key: SigningKey) -> String {
    var parts = [key.id, key.kind, key.schemes.map(\.rawValue).sorted().joined(separator: ",")]
    if key.isLegacy { parts.append("legacy") }
    if let start = key.notBefore { parts.append("from \(CivilTime(seconds: start).rfc3339)") }
    if let end = key.notAfter { parts.append("until \(CivilTime(seconds: end).rfc3339)") }
    if !key.scopes.isEmpty { parts.append(Text.count(key.scopes.count, "scope")) }
    return parts.joined(separator: "  ")
  }
}
