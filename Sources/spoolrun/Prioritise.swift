internal import ArgumentParser
internal import Spool

struct Prioritise: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "prioritise", abstract: "Lets waiting jobs start before or after others.",
    discussion: """
      With --high, which is the default, moves jobs to urgent: they start before all others, and one that waits for \
      its next attempt starts now. With --normal or --low, writes the priority into the job.
      """)

  /// The American one is accepted, too.
  static let otherSpelling = "prioritize"

  enum Level: String, EnumerableFlag {
    case high, normal, low

    static func help(for value: Level) -> ArgumentHelp? {
      switch value {
      case .high: "Start before all others that wait."
      case .normal: "Start in the order of age."
      case .low: "Start only when no other job can."
      }
    }

    var gesture: Gesture {
      switch self {
      case .high: .high
      case .normal: .normal
      case .low: .low
      }
    }
  }

  @OptionGroup var options: GestureOptions

  @Flag var level = Level.high

  func validate() throws {
    if options.names.isEmpty { throw ValidationError("Name jobs. Write `--` before a name that begins with a dash.") }
  }

  func run() throws { try options.run(level.gesture, all: nil) }

  static func spelled(in arguments: [String]) -> [String] {
    guard arguments.first == otherSpelling else { return arguments }
    return [configuration.commandName ?? "prioritise"] + arguments.dropFirst()
  }
}
