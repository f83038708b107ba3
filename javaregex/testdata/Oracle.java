import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.regex.*;
import java.util.zip.CRC32;

/** Says what java.util.regex does. "patterns": each line of the input is a pattern, its flags, a
 * replacement and texts, with tabs between; the answer is a line of results. "properties": each
 * line is a pattern of one character; the answer is the checksum of the characters it matches,
 * among those that this Java knows. */
public class Oracle {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8");
        if (args[0].equals("properties")) {
            out.println("assigned " + assigned());
            out.println("fold " + fold());
        }
        for (String line; (line = in.readLine()) != null; ) {
            String[] f = line.split("\t", -1);
            out.println(args[0].equals("properties") ? line + "\t" + property(unescape(line)) : patterns(f));
        }
        out.flush();
    }

    static String patterns(String[] f) {
        Pattern p;
        try {
            p = Pattern.compile(unescape(f[0]), Integer.parseInt(f[1]));
        } catch (PatternSyntaxException e) {
            return "E";
        }
        StringBuilder b = new StringBuilder();
        for (int i = 3; i < f.length; i++) {
            if (i > 3) b.append('\t');
            try {
                Matcher m = p.matcher(unescape(f[i]));
                boolean whole = m.matches();
                b.append(whole ? groups(m) : "no").append(';');
                m.reset();
                b.append(m.lookingAt() ? groups(m) : "no");
                if (!whole) continue;
                try {
                    b.append(';').append(escape(m.replaceFirst(unescape(f[2]))));
                } catch (IllegalArgumentException | IndexOutOfBoundsException e) {
                    b.append('!');
                }
            } catch (NullPointerException | StackOverflowError e) {
                b.append("X");
            }
        }
        return b.toString();
    }

    static String groups(Matcher m) {
        StringBuilder b = new StringBuilder();
        for (int i = 0; i <= m.groupCount(); i++) b.append(m.start(i)).append('-').append(m.end(i)).append(' ');
        return b.toString();
    }

    static boolean known(int c) {
        // What later releases of Unicode moved from one property to another is left out.
        if ("\u1734\u0c04\u0f82\u0f83\ud804\udc80\ud804\udc81\u10fc\uab69\ud81b\udfe2\ud81b\udfe3".indexOf(c) >= 0) return false;
        return Character.getType(c) != Character.UNASSIGNED && Character.getType(c) != Character.SURROGATE;
    }

    static String assigned() {
        StringBuilder b = new StringBuilder();
        for (int c = 0, from = -1; c <= 0x110000; c++) {
            boolean is = c < 0x110000 && known(c);
            if (is && from < 0) from = c;
            if (!is && from >= 0) {
                b.append(Integer.toHexString(from)).append('-').append(Integer.toHexString(c - 1)).append(' ');
                from = -1;
            }
        }
        return b.toString().trim();
    }

    static String fold() {
        CRC32 crc = new CRC32();
        for (int c = 0; c < 0x110000; c++) {
            if (!known(c)) continue;
            for (int v : new int[] {Character.toUpperCase(c), Character.toLowerCase(c)}) {
                crc.update(v & 255); crc.update(v >> 8 & 255); crc.update(v >> 16);
            }
        }
        return Long.toHexString(crc.getValue());
    }

    static String property(String pattern) {
        Matcher m;
        try {
            m = Pattern.compile(pattern).matcher("");
        } catch (PatternSyntaxException e) {
            return "E";
        }
        CRC32 crc = new CRC32();
        for (int c = 0; c < 0x110000; c++) {
            if (known(c)) crc.update(m.reset(Character.toString(c)).matches() ? 1 : 0);
        }
        return Long.toHexString(crc.getValue());
    }

    static String unescape(String s) {
        StringBuilder b = new StringBuilder();
        for (int i = 0; i < s.length(); i++) {
            if (s.charAt(i) != '\\') {
                b.append(s.charAt(i));
            } else {
                b.append((char) Integer.parseInt(s.substring(i + 2, i + 6), 16));
                i += 5;
            }
        }
        return b.toString();
    }

    static String escape(String s) {
        StringBuilder b = new StringBuilder();
        for (char c : s.toCharArray()) {
            if (c > ' ' && c < 127 && c != '\\') b.append(c);
            else b.append(String.format("\\u%04x", (int) c));
        }
        return b.toString();
    }
}
