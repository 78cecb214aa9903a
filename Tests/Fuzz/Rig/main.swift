internal import CLibFuzzer
internal import FuzzProperties
internal import Glibc

// `FuzzRig TARGET ARGUMENT…`: libFuzzer with the arguments that it knows (`-help=1`), on one of the targets. Without a
// target it prints their names.

/// libFuzzer's function takes no context along.
nonisolated(unsafe) private var target: FuzzTarget?

var arguments = CommandLine.arguments
// For a merge libFuzzer starts this program again, with the arguments that it knows.
if let inherited = getenv("FUZZRIG_TARGET") {
  target = FuzzTarget(rawValue: String(cString: inherited))
} else if arguments.count > 1, let named = FuzzTarget(rawValue: arguments.remove(at: 1)) {
  setenv("FUZZRIG_TARGET", named.rawValue, 1)
  target = named
}
guard target != nil else {
  FuzzTarget.allCases.forEach { print($0.rawValue) }
  exit(CommandLine.arguments.count > 1 ? 64 : 0)
}
if let seconds = getenv("FUZZRIG_SECONDS").flatMap({ Int(String(cString: $0)) }) {
  // What libFuzzer takes for the wish to end.
  signal(SIGPROF) { _ in raise(SIGUSR1) }
  var timer = itimerval(it_interval: timeval(), it_value: timeval(tv_sec: seconds, tv_usec: 0))
  setitimer(__itimer_which_t(ITIMER_PROF.rawValue), &timer, nil)
}

var words: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
var count = Int32(arguments.count)
let status = words.withUnsafeMutableBufferPointer { buffer in
  var base = buffer.baseAddress
  return LLVMFuzzerRunDriver(&count, &base) { bytes, length in
    let begun = clock()
    do throws(Violation) {
      try target?.check(Array(UnsafeBufferPointer(start: bytes, count: length)))
    } catch {
      // libFuzzer keeps the input of what it takes for a crash.
      fatalError("violated: \(error)")
    }
    if clock() - begun > CLOCKS_PER_SEC { fatalError("violated: over a second of CPU for one input") }
    return 0
  }
}
exit(status)
