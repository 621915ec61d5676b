// `environ` is a variable of C: reading it is safe while no thread calls setenv(3), as for every reader of
// the environment.
@preconcurrency import Glibc

/// The environment of the process (environ(7)).
package enum ProcessEnvironment {
  /// The variables whose names are ASCII, which includes every variable that netopt reads. Other names are
  /// left out: Swift normalises a key of a dictionary to hash it, which takes quadratic time for a long run
  /// of combining marks (`SlowText`). Invalid UTF-8 in a value is repaired.
  package static var variables: [String: String] { variables(of: environ) }

  /// The variables of an environment block.
  ///
  /// - Parameter block: pointers to entries `NAME=value`, each of which ends with a zero byte, and then
  ///   `nil`. The entries must not change during the call.
  package static func variables(of block: UnsafePointer<UnsafeMutablePointer<CChar>?>) -> [String: String] {
    var variables: [String: String] = [:]
    var next = block
    while let entry = next.pointee {
      next += 1
      // Not copied: the entries do not change during the call.
      let bytes = UnsafeRawBufferPointer(start: entry, count: strlen(entry))
      guard let end = bytes.firstIndex(of: UInt8(ascii: "=")), bytes[..<end].allSatisfy({ $0 < 0x80 })
      else { continue }
      let name = String(decoding: bytes[..<end], as: UTF8.self)
      // Like getenv(3), take the first of several variables of one name.
      if variables[name] == nil { variables[name] = String(decoding: bytes[(end + 1)...], as: UTF8.self) }
    }
    return variables
  }
}
