internal import Spool

/// The outputs of the running jobs, and the jobs that wait until one of these ends. Two jobs with one output would
/// fetch the same bytes beside each other, and only one of them could publish.
struct OutputWait {
  /// The maximum number of jobs that wait here. More are found again by a pass.
  static let most = 1000

  private var outputs: [UInt64: ExactText] = [:]
  private var uses: [ExactText: Int] = [:]
  /// By output, each oldest first from `start`.
  private var waiting: [ExactText: (choices: [Choice], start: Int)] = [:]
  /// Outputs for which jobs wait, and which perhaps no job has now.
  private var free: [ExactText] = []
  private(set) var count = 0
  /// Whether more jobs have to wait than fit here. A pass finds them again when none is left here.
  var hasPassedOver = false

  /// Lets a job wait here if a running one has its output.
  /// - Returns: whether it has to wait.
  mutating func mustWait(_ choice: Choice) -> Bool {
    guard let output = choice.peek.output, uses[output] != nil else { return false }
    guard count < Self.most else {
      hasPassedOver = true
      return true
    }
    waiting[output, default: ([], 0)].choices.append(choice)
    count += 1
    return true
  }

  mutating func started(_ id: UInt64, _ choice: Choice) {
    guard let output = choice.peek.output else { return }
    outputs[id] = output
    uses[output, default: 0] += 1
  }

  mutating func ended(_ id: UInt64) {
    guard let output = outputs.removeValue(forKey: id), let number = uses[output] else { return }
    uses[output] = number > 1 ? number - 1 : nil
    if number == 1, waiting[output] != nil { free.append(output) }
  }

  /// The next job that may start because the running one with its output has ended. The others wait until this one has
  /// ended, or turns out to be gone: then a later call returns the next one.
  mutating func next(_ slots: FreeSlots) -> Candidate? {
    free.removeAll { uses[$0] != nil || waiting[$0] == nil }
    for output in free {
      guard var queue = waiting[output] else { continue }
      let choice = queue.choices[queue.start]
      guard slots.areFree(for: choice.peek) else { continue }
      queue.start += 1
      count -= 1
      waiting[output] = queue.start < queue.choices.count ? queue : nil
      return choice.candidate
    }
    return nil
  }

  /// All jobs that wait, in no particular order.
  var candidates: [Candidate] { waiting.values.flatMap { $0.choices[$0.start...] }.map(\.candidate) }

  /// Whether all jobs here that come first wait for a proxy.
  func areHeldBack(by slots: FreeSlots) -> Bool {
    waiting.values.allSatisfy { slots.waitsForProxy($0.choices[$0.start].peek) }
  }

  /// Forgets the jobs in these directories, because a pass finds them again.
  mutating func forget(_ directories: [Directory]) {
    waiting = waiting.compactMapValues { queue in
      let left = queue.choices[queue.start...].filter { !directories.contains($0.candidate.origin) }
      return left.isEmpty ? nil : (left, 0)
    }
    count = waiting.values.reduce(0) { $0 + $1.choices.count }
  }
}
