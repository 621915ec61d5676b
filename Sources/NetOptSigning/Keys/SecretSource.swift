import Glibc
import NetOptCrypto

/// Where a secret comes from.
enum SecretSource: Sendable {
  /// The key ring itself.
  case bytes(SecretBytes)
  /// An environment variable.
  case environment(String)
  /// What a command prints, without one line end at its end. It is run by `/bin/sh` when the secret is first needed, with
  /// nothing to read.
  case command(String)

  /// The most bytes that a secret may have.
  static let limit = 64 * 1024

  /// Fetches the secret. May block for as long as a command runs.
  ///
  /// - Throws: `keyUnavailable`; the detail says why, and nothing of what the secret is.
  func fetch() throws(SigningFault) -> SecretBytes {
    switch self {
    case .bytes(let bytes): return bytes
    case .environment(let name):
      guard let value = getenv(name), strlen(value) > 0 else {
        throw SigningFault(.keyUnavailable, "the environment variable \(name) is not set")
      }
      return SecretBytes(count: strlen(value)) { memory in
        memory.copyMemory(from: UnsafeRawBufferPointer(start: value, count: memory.count))
      }
    case .command(let command): return try Self.output(of: command)
    }
  }

  private static func output(of command: String) throws(SigningFault) -> SecretBytes {
    guard let stream = popen("exec </dev/null\n" + command, "re") else {
      throw SigningFault(
        .keyUnavailable, "the key's command could not be started: \(String(cString: strerror(errno)))")
    }
    var count = 0
    let read = SecretBytes(count: limit + 1) { memory in
      count = fread(memory.baseAddress, 1, memory.count, stream)
    }
    let status = pclose(stream)
    guard count <= limit else {
      throw SigningFault(.keyUnavailable, "the key's command printed more than \(limit) bytes")
    }
    guard status == 0 else {
      throw SigningFault(
        .keyUnavailable,
        "the key's command failed with \(status & 0x7f == 0 ? "exit code \(status >> 8 & 0xff)" : "signal \(status & 0x7f)")"
      )
    }
    let endsLine = read.withUnsafeBytes { count > 0 && $0[count - 1] == 0x0a }
    let length = endsLine ? count - 1 : count
    guard length > 0 else { throw SigningFault(.keyUnavailable, "the key's command printed nothing") }
    return read.part(0..<length)
  }
}
