import CFuzzer
import Glibc
import NetOptFuzzing

/// Fuzzes one target: `netopt-fuzz TARGET [option of libFuzzer or corpus …]`. A broken rule ends the program
/// like a crash, so that libFuzzer keeps the input.
enum Fuzzer {
  /// The target that the first argument names; `nil` when there is no argument or no such target.
  static let target = CommandLine.arguments.dropFirst().first.flatMap { FuzzedInput(target: $0) }
}

/// Makes the next input for the target. libFuzzer calls this function instead of its own mutations. For a
/// target that can generate inputs, one call in four generates an input; the other calls let libFuzzer mutate
/// the input.
///
/// - Parameters:
///   - bytes: the buffer with the input, which the new input replaces.
///   - count: the size of the input in bytes.
///   - most: the size of the buffer in bytes.
/// - Returns: the size of the new input in bytes.
@_cdecl("LLVMFuzzerCustomMutator")
func mutate(_ bytes: UnsafeMutablePointer<UInt8>, _ count: Int, _ most: Int, _ seed: UInt32) -> Int {
  if seed.isMultiple(of: 4), let made = Fuzzer.target?.made(from: UInt64(seed)), made.count <= most {
    // The input fits, because the buffer has `most` bytes.
    _ = UnsafeMutableBufferPointer(start: bytes, count: made.count).update(fromContentsOf: made)
    return made.count
  }
  return LLVMFuzzerMutate(bytes, count, most)
}

guard Fuzzer.target != nil else {
  let usage = """
    Usage: netopt-fuzz TARGET [option of libFuzzer or corpus ...]
    Targets: \(FuzzedInput.targets.joined(separator: " "))

    """
  _ = write(STDERR_FILENO, usage, usage.utf8.count)
  exit(64)
}

// libFuzzer gets the arguments without the name of the target.
var arguments: [UnsafeMutablePointer<CChar>?] = [CommandLine.unsafeArgv[0]]
for index in 2..<max(Int(CommandLine.argc), 2) { arguments.append(CommandLine.unsafeArgv[index]) }
var count = CInt(arguments.count)
arguments.append(nil)
let status = arguments.withUnsafeMutableBufferPointer { arguments in
  var start = arguments.baseAddress
  return LLVMFuzzerRunDriver(&count, &start) { bytes, count in
    Fuzzer.target?.run(UnsafeBufferPointer(start: bytes, count: count))
    return 0
  }
}
exit(status)
