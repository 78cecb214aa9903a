internal import Spool

/// The outputs of the running jobs, and the jobs that wait until one of these ends. Two jobs with one output would
/// fetch the same bytes beside each other, and only one of them could publish.
struct OutputWait {
  /// The maximum number of jobs that wait here. More are found again by a pass.
  static let most = 1000

  private var outputs: [UInt64: String] = [:]
  private var uses: [String: Int] = [:]
  private var waiting: [String: [Candidate]] = [:]
  private(set) var count = 0

  /// Whether a running job has the output of this one. Then this one waits here.
  /// - Returns: nil if it may start; otherwise whether it has to be found again by a pass, because too many wait.
  mutating func holdBack(_ choice: Choice) -> HoldBack? {
    guard let output = choice.peek.output, uses[output] != nil else { return nil }
    guard count < Self.most else { return .passedOver }
    waiting[output, default: []].append(choice.candidate)
    count += 1
    return .waits
  }

  enum HoldBack { case waits, passedOver }

  mutating func started(_ id: UInt64, _ choice: Choice) {
    guard let output = choice.peek.output else { return }
    outputs[id] = output
    uses[output, default: 0] += 1
  }

  /// - Returns: the jobs that waited for this one's end. The first of them may start.
  mutating func ended(_ id: UInt64) -> [Candidate] {
    guard let output = outputs.removeValue(forKey: id), let number = uses[output] else { return [] }
    guard number == 1 else {
      uses[output] = number - 1
      return []
    }
    uses[output] = nil
    let free = waiting.removeValue(forKey: output) ?? []
    count -= free.count
    return free
  }

  /// Forgets the jobs in these directories, because a pass finds them again.
  mutating func forget(_ directories: [Directory]) {
    waiting = waiting.compactMapValues { candidates in
      let left = candidates.filter { !directories.contains($0.origin) }
      return left.isEmpty ? nil : left
    }
    count = waiting.values.reduce(0) { $0 + $1.count }
  }
}
