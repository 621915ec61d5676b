import CFuzzer
import Glibc
import NetOptFuzzing

/// Fuzzes one target: `netopt-fuzz TARGET [option of libFuzzer or corpus …]`. What is wrong ends the program, as a crash does, so
/// that libFuzzer keeps the input.
enum Fuzzer {
  static let target = CommandLine.arguments.dropFirst().first.flatMap { FuzzedInput(target: $0) }
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
