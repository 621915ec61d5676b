import CBrotli

/// Decodes the coding br (RFC 7932) with the brotli library. The window takes at most 16 MiB.
final class BrotliDecoder: CodingDecoder {
  private let state: OpaquePointer
  private(set) var isAtEnd = false

  init() throws(CodingFailure) {
    guard let state = BrotliDecoderCreateInstance(nil, nil, nil) else { throw .outOfMemory }
    self.state = state
  }

  deinit { BrotliDecoderDestroyInstance(state) }

  func decode(
    _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
  ) throws(CodingFailure) -> (taken: Int, made: Int) {
    if isAtEnd {
      guard input.isEmpty else { throw .invalid }
      return (0, 0)
    }
    var (inputLeft, outputLeft) = (input.count, output.count)
    var nextInput = input.bindMemory(to: UInt8.self).baseAddress
    var nextOutput = output.bindMemory(to: UInt8.self).baseAddress
    let result = BrotliDecoderDecompressStream(
      state, &inputLeft, &nextInput, &outputLeft, &nextOutput, nil)
    switch result {
    case BROTLI_DECODER_RESULT_SUCCESS:
      isAtEnd = true
      guard inputLeft == 0 else { throw .invalid }
    case BROTLI_DECODER_RESULT_ERROR: throw .invalid
    default: break
    }
    return (input.count - inputLeft, output.count - outputLeft)
  }
}
