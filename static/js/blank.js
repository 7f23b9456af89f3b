// Text with nothing to be seen in it. The server has the same rule, in app/chat/texts.py.

const BLANK = /^[\s\p{Z}\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]*$/u;

export const isBlank = (text) => BLANK.test(text);
