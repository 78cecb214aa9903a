internal import ArgumentParser
internal import Glibc

@main
enum Main {
  static func main() {
    Terminal.openMissing()
    let arguments = RawArguments.all.map { String(decoding: $0, as: UTF8.self) }
    // No arguments means the default command, which downloads. It must not start by accident.
    guard !arguments.isEmpty else {
      Terminal.error("started with an empty argument list, without a program name (see execve(2)); doing nothing")
      exit(ExitStatus.usage.rawValue)
    }
    UnreadableText.refuse(in: Array(RawArguments.all.dropFirst()))
    let commands = Spoolrun.commandNames
    let given = Prioritise.spelled(
      in: LeadingSpool.moved(
        in: Array(arguments.dropFirst()), commands: commands + [Prioritise.otherSpelling]))
    DashedName.refuse(in: given)
    if let script = CompletionScript.asked(given) { return Terminal.print(script) }
    if let complaint = Suggestion.complaint(about: given, commands: commands) {
      Terminal.error(complaint)
      exit(ExitStatus.usage.rawValue)
    }
    // Returns only on success. Otherwise the command has exited with its own status.
    if let run = defaultCommand(given, commands) { perform(run) } else { Spoolrun.main(given) }
    if Terminal.hasOutputFailed { exit(ExitStatus.inputOutput.rawValue) }
  }

  /// The default command with these arguments; nil for any other command, and for anything wrong. The parser takes half
  /// as long without the other commands, and cron starts this one each minute.
  private static func defaultCommand(_ arguments: [String], _ commands: [String]) -> Run? {
    guard !arguments.contains(where: { commands.contains($0) }) else { return nil }
    // What is wrong is said with all commands in view.
    return try? Run.parseAsRoot(arguments) as? Run
  }

  private static func perform(_ command: Run) {
    do { try command.run() } catch { Spoolrun.exit(withError: error) }
  }
}
