import CFuzzer
import Glibc
import NetOptFuzzing

/// Fuzzes one target: `netopt-fuzz TARGET [option of libFuzzer or corpus …]`. A broken rule ends the program
/// like a crash, so that libFuzzer keeps the input.
enum Fuzzer {
  static let target = CommandLine.arguments.dropFirst().first.flatMap { FuzzedInput(target: $0) }
}

/// Called by libFuzzer instead of its own mutations: one input in four is a new one, if the target can
/// generate inputs.
@_cdecl("LLVMFuzzerCustomMutator")
func mutate(_ bytes: UnsafeMutablePointer<UInt8>, _ count: Int, _ most: Int, _ seed: UInt32) -> Int {
  if seed.isMultiple(of: 4), let made = Fuzzer.target?.made(from: UInt64(seed)), made.count <= most {
    // libFuzzer's buffer has space for `most` bytes.
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
