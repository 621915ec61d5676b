/// JSON texts in UTF-16 and UTF-32. RFC 8259, section 8.1, allows only UTF-8, but Foundation's JSON decoder
/// accepts these texts too. So netopt must refuse them before it calls the decoder.
package enum WideJSON {
  /// Returns a JSON text in 8 encodings: UTF-16 and UTF-32, each in both byte orders, with and without a byte
  /// order mark.
  package static func encodings(of json: [UInt8]) -> [[UInt8]] {
    let text = String(decoding: json, as: UTF8.self)
    return ["", "\u{feff}"].flatMap { mark in
      let units = Array((mark + text).utf16)
      let scalars = (mark + text).unicodeScalars.map(\.value)
      return [
        units.flatMap { bytes($0.bigEndian) }, units.flatMap { bytes($0.littleEndian) },
        scalars.flatMap { bytes($0.bigEndian) }, scalars.flatMap { bytes($0.littleEndian) },
      ]
    }
  }

  /// The bytes of a number as they are in memory.
  private static func bytes(_ unit: some FixedWidthInteger) -> [UInt8] {
    withUnsafeBytes(of: unit) { Array($0) }
  }
}
