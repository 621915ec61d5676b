import Glibc
import NetOptCore
import NetOptCrypto

/// Reads a key ring file.
enum KeyFile {
  /// The maximum size of a key ring file in bytes: 4 MiB.
  private static let limit = 4 << 20

  /// Reads the bytes of a file. Throws unless it is a regular file that only its owner can access.
  static func read(_ path: String) throws(NetOptError) -> SecretBytes {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { throw unreadable(path, errno) }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw unreadable(path, errno) }
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw NetOptError(
        .unreadableFile, phase: .sign, "the key ring \(FileBytes.shown(path)) is not a regular file")
    }
    guard status.st_mode & 0o077 == 0 else {
      throw NetOptError(
        .unreadableFile, phase: .sign,
        "cannot read the key ring \(FileBytes.shown(path)): other users can read it; run: chmod 600 \(FileBytes.shown(path))"
      )
    }
    guard status.st_size <= limit else {
      throw NetOptError(
        .unreadableFile, phase: .sign,
        "the key ring \(FileBytes.shown(path)) is larger than \(limit >> 20) MiB")
    }
    var count = 0
    var failure: Int32 = 0
    let bytes = SecretBytes(count: Int(status.st_size)) { memory in
      while count < memory.count, failure == 0 {
        let got = Glibc.read(descriptor, memory.baseAddress?.advanced(by: count), memory.count - count)
        if got == 0 { break }
        if got > 0 { count += got } else if errno != EINTR { failure = errno }
      }
    }
    guard failure == 0 else { throw unreadable(path, failure) }
    return count == bytes.count ? bytes : bytes.part(0..<count)
  }

  /// The error of a system call on the file. `code` is its errno.
  private static func unreadable(_ path: String, _ code: Int32) -> NetOptError {
    let reason = String(cString: strerror(code))
    return NetOptError(
      .unreadableFile, phase: .sign, "the key ring \(FileBytes.shown(path)) cannot be read: \(reason)",
      underlying: NetOptError.Underlying(.system, code: code, text: reason))
  }

  /// The names of all members that a key may have.
  private static let members: Set = [
    "id", "secret", "secret_base64", "secret_env", "secret_command", "public_key_pem", "private_key_pem",
    "salt",
    "schemes", "legacy", "not_before", "not_after", "scopes", "session_token", "note",
  ]
  /// The message for a secret or salt of more than `SecretSource.limit` bytes.
  private static let tooLong = "must have at most \(SecretSource.limit >> 10) KiB"
  /// The maximum number of keys in a ring.
  private static let mostKeys = 10_000
  /// The members that give the secret or key pair of a key. A key has exactly one of them.
  private static let sources = [
    "secret", "secret_base64", "secret_env", "secret_command", "public_key_pem", "private_key_pem",
  ]

  /// Reads the keys of a key ring. Throws if two keys have the same id.
  static func keys(_ root: JSONPart) throws(JSONFault) -> [SigningKey] {
    let schema = try root.required("schema")
    guard try schema.integer() == 1 else { throw schema.fault("this program reads only schema 1") }
    var ids: Set<String> = []
    var keys: [SigningKey] = []
    let list = try root.required("keys")
    let parts = try list.elements()
    guard parts.count <= mostKeys else { throw list.fault("has more than \(mostKeys) keys") }
    for part in parts {
      let key = try key(part)
      guard ids.insert(key.id).inserted else { throw part.fault("another key has the same id") }
      keys.append(key)
    }
    return keys
  }

  /// Reads one key.
  private static func key(_ part: JSONPart) throws(JSONFault) -> SigningKey {
    for member in try part.members() where !members.contains(member.name) {
      throw member.value.fault("a key cannot have this member")
    }
    let id = try part.required("id")
    let name = try id.string()
    guard (1...256).contains(name.utf8.count), name.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else {
      throw id.fault("an id must have 1 to 256 visible ASCII characters")
    }
    var schemes: Set<SchemeName> = []
    for element in try part.required("schemes").elements() {
      guard let scheme = SchemeName(rawValue: try element.string()) else {
        throw element.fault("must be one of \(SchemeName.allCases.map(\.rawValue).joined(separator: ", "))")
      }
      schemes.insert(scheme)
    }
    let from = try moment(part, "not_before")
    let until = try moment(part, "not_after")
    if let from, let until, from > until { throw part.fault("not_before is later than not_after") }
    return SigningKey(
      id: name, source: try source(part), salt: try salt(part), schemes: schemes,
      isLegacy: try part.member("legacy")?.bool() ?? false, notBefore: from, notAfter: until,
      scopes: try scopes(part), sessionToken: try part.member("session_token")?.secret())
  }

  /// Reads the salt of a key; empty when the member is missing.
  private static func salt(_ part: JSONPart) throws(JSONFault) -> String {
    guard let member = try part.member("salt") else { return "" }
    let salt = try member.string()
    guard !salt.utf8.contains(0) else { throw member.fault("a salt must not contain a NUL") }
    // `salted-md5` hashes the salt in each of up to 1,000 rounds.
    guard salt.utf8.count <= SecretSource.limit else { throw member.fault(tooLong) }
    return salt
  }

  /// Reads where the key's material comes from: the secret itself, the variable or command that gives the
  /// secret, or the key pair.
  private static func source(_ part: JSONPart) throws(JSONFault) -> SigningKey.Source {
    var given: [String] = []
    for name in sources where try part.member(name) != nil { given.append(name) }
    guard given.count == 1 else {
      throw part.fault("must have one of \(sources.joined(separator: ", "))")
    }
    let member = try part.required(given[0])
    switch given[0] {
    case "secret_env":
      let name = try filled(member)
      guard name.utf8.allSatisfy({ ByteClass.isUnreserved($0) && $0 < 0x7e && $0 != 0x2d && $0 != 0x2e }),
        name.utf8.first.map(ByteClass.isDigit) == false
      else { throw member.fault("must be the name of an environment variable: letters, digits and _") }
      return .secret(.environment(name))
    case "secret_command": return .secret(.command(try filled(member)))
    case "public_key_pem", "private_key_pem":
      let pem = try member.secret()
      do throws(CryptoError) {
        return .pair(try AsymmetricKey(pem: pem, isPrivate: given[0] == "private_key_pem"))
      } catch { throw member.fault(error.description) }
    case "secret_base64":
      // The array has no other owner, so `wipe` overwrites the only copy.
      guard var bytes = try member.secret().withUnsafeBytes({ Base64.decode($0) }), !bytes.isEmpty else {
        throw member.fault("must be base64 with padding, and not empty")
      }
      defer { wipe(&bytes) }
      guard bytes.count <= SecretSource.limit else { throw member.fault(tooLong) }
      return .secret(.bytes(SecretBytes(copying: bytes)))
    default:
      let secret = try member.secret()
      guard secret.count > 0 else { throw member.fault("must not be empty") }
      guard secret.count <= SecretSource.limit else { throw member.fault(tooLong) }
      return .secret(.bytes(secret))
    }
  }

  /// Reads a text. Throws if it is empty, or contains a NUL, at which a C string would end.
  private static func filled(_ part: JSONPart) throws(JSONFault) -> String {
    let text = try part.string()
    guard !text.isEmpty, !text.utf8.contains(0) else {
      throw part.fault("must not be empty or contain a NUL")
    }
    return text
  }

  /// Reads a time in seconds since 1970. The member has this number or an RFC 3339 timestamp in UTC. `nil`
  /// when the member is missing.
  private static func moment(_ part: JSONPart, _ name: String) throws(JSONFault) -> Int64? {
    guard let member = try part.member(name) else { return nil }
    guard member.isString else { return try member.integer() }
    guard let time = CivilTime(rfc3339: try member.string()) else {
      throw member.fault("must be seconds since 1970, or a time in UTC such as 2026-11-20T00:00:00Z")
    }
    return time.seconds
  }

  /// Reads the scopes of a key; none when the member is missing.
  private static func scopes(_ part: JSONPart) throws(JSONFault) -> [KeyScope] {
    guard let member = try part.member("scopes") else { return [] }
    var scopes: [KeyScope] = []
    for scope in try member.elements() {
      for member in try scope.members() where !["hosts", "methods", "path_prefixes"].contains(member.name) {
        throw member.value.fault("a scope cannot have this member")
      }
      scopes.append(
        KeyScope(
          hosts: try scope.member("hosts")?.strings(), methods: try scope.member("methods")?.strings(),
          pathPrefixes: try scope.member("path_prefixes")?.strings()))
    }
    // A key without scopes would be valid for every request.
    guard !scopes.isEmpty else {
      throw member.fault("must have at least one scope; leave the member out for a key without limits")
    }
    return scopes
  }
}
